"""Servers for whole-process tests: one Dovecot, one MariaDB and one MySQL a run, one user and one database a test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.servers.dovecot import Dovecot
from tests.servers.mariadb import MariaDb
from tests.servers.mysql import MySql
from tests.servers.process import free_port as find_free_port

_numbers = itertools.count(1)


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
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh database on each named target."""
    if request.param == "mysql" and request.config.getoption("--without-mysql"):
        pytest.skip("asked for by --without-mysql")
    server = request.getfixturevalue(request.param)
    return str(server.create_database())


@pytest.fixture
def mariadb_url(mariadb: MariaDb) -> str:
    return mariadb.create_database()


@pytest.fixture
def new_user() -> Callable[[], str]:
    """Names of mailboxes nobody has used yet."""
    return lambda: f"user{next(_numbers)}"


@pytest.fixture
def mariadb_address(mariadb: MariaDb) -> tuple[str, int]:
    """Where the MariaDB behind `mariadb_url` listens, for a proxy in front of it."""
    return ("127.0.0.1", mariadb.port)


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on."""
    return find_free_port()
