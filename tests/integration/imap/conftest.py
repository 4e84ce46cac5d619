from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.servers.dovecot import Dovecot

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def dovecot() -> Iterator[Dovecot]:
    with Dovecot() as server:
        yield server


@pytest.fixture
def user() -> str:
    """A mailbox of its own for each test."""
    return f"user{next(_numbers)}"
