"""What every test may use, and what no test may leave behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.servers.commands import CommandLine
from tests.servers.dovecot import Dovecot
from tests.servers.mariadb import MariaDb
from tests.servers.mysql import MySql

pytest_plugins = ["tests.leaks", "tests.order"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without-mysql",
        action="store_true",
        help="run on SQLite and MariaDB alone, for a machine that can have no MySQL",
    )


def pytest_configure() -> None:
    """Keep settings of a real installation, exported in the shell that runs the tests, out of them."""
    for name in [name for name in os.environ if name.startswith("OPS_MAIL_")]:
        del os.environ[name]
    # Set in some containers: each process that a test starts would compile all of the program anew, half a second.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A shell without job control starts what is in its background with Ctrl-C ignored, and children inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# One server of each kind a run, started when the first test asks for it; tests share it, never a user or a database.


@pytest.fixture(scope="session")
def command_line() -> Iterator[CommandLine]:
    with CommandLine() as forking:
        yield forking


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
