from __future__ import annotations

import itertools

import pytest

_numbers = itertools.count(1)


@pytest.fixture
def user() -> str:
    """A mailbox of its own for each test."""
    return f"imap-user{next(_numbers)}"
