"""Fixtures for tests that need a database. Import all of them into a conftest: `from tests.servers.fixtures import *`.

`database_url` runs its test once on SQLite, once on MariaDB and once on MySQL, each time with a fresh database;
with `--without-mysql` the third is not asked for at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.mariadb import MariaDb
from tests.servers.mysql import MySql
from tests.servers.process import SqlServer

__all__ = ["database_url", "own_server", "pytest_generate_tests", "sql_server"]

SERVERS = ("mariadb", "mysql")
ENGINES = ("sqlite", *SERVERS)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrises `database_url` over all engines, `sql_server` and `own_server` over the two servers."""
    without_mysql = metafunc.config.getoption("--without-mysql")
    for name, engines in (("database_url", ENGINES), ("sql_server", SERVERS), ("own_server", SERVERS)):
        if name in metafunc.fixturenames and not _is_parametrised(metafunc, name):
            wanted = [engine for engine in engines if not (without_mysql and engine == "mysql")]
            metafunc.parametrize(name, wanted, indirect=True)


def _is_parametrised(metafunc: pytest.Metafunc, name: str) -> bool:
    return any(name in str(mark.args[:1]) for mark in metafunc.definition.iter_markers("parametrize"))


@pytest.fixture
def sql_server(request: pytest.FixtureRequest) -> SqlServer:
    """The session's MariaDB, then its MySQL."""
    server = request.getfixturevalue(request.param)
    assert isinstance(server, SqlServer)
    return server


@pytest.fixture
def own_server(request: pytest.FixtureRequest) -> Iterator[SqlServer]:
    """A server for one test alone, which may kill or freeze it: MariaDB, then MySQL."""
    server: SqlServer = MySql() if request.param == "mysql" else MariaDb()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh database on each engine in turn."""
    if request.param == "sqlite":
        return f"sqlite+aiosqlite:///{tmp_path}/ops-mail.db"
    server = request.getfixturevalue(request.param)
    assert isinstance(server, SqlServer)
    return server.create_database()
