"""What whole-process tests share: a user and a database of its own for each test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from tests.servers.mariadb import MariaDb
from tests.servers.mysql import MySql
from tests.servers.process import SqlServer
from tests.servers.process import free_port as find_free_port

Server = TypeVar("Server", bound=SqlServer)

_numbers = itertools.count(1)


@pytest.fixture
def new_user() -> Callable[[], str]:
    """Names of mailboxes nobody has used yet."""
    return lambda: f"box{next(_numbers)}"


@pytest.fixture
def mariadb_url(mariadb: MariaDb) -> str:
    """A fresh database on MariaDB."""
    return mariadb.create_database()


@pytest.fixture
def mariadb_address(mariadb: MariaDb) -> tuple[str, int]:
    """Where the MariaDB behind `mariadb_url` listens, for a proxy in front of it."""
    return ("127.0.0.1", mariadb.port)


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on."""
    return find_free_port()


@pytest.fixture
def own_mariadb() -> Iterator[MariaDb]:
    """A MariaDB for one test alone, which may kill or freeze it."""
    yield from _own(MariaDb())


@pytest.fixture
def own_mysql() -> Iterator[MySql]:
    """A MySQL for one test alone."""
    yield from _own(MySql())


def _own(server: Server) -> Iterator[Server]:
    server.start()
    try:
        yield server
    finally:
        server.stop()
