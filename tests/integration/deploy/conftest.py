"""Servers of these tests: one of each kind a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.dovecot import Dovecot
from tests.servers.mariadb import MariaDb
from tests.servers.mysql import MySql
from tests.servers.process import SqlServer


@pytest.fixture(scope="session")
def dovecot() -> Iterator[Dovecot]:
    with Dovecot() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    server = MariaDb()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def mysql() -> Iterator[MySql]:
    server = MySql()
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["mariadb", "mysql"])
def sql_server(request: pytest.FixtureRequest) -> SqlServer:
    """Each named target."""
    if request.param == "mysql" and request.config.getoption("--without-mysql"):
        pytest.skip("asked for by --without-mysql")
    server = request.getfixturevalue(request.param)
    assert isinstance(server, SqlServer)
    return server
