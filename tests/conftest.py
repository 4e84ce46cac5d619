"""What every test may use, and what no test may leave behind."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.leaks"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without-mysql",
        action="store_true",
        help="run on SQLite and MariaDB alone, for a machine that can have no MySQL",
    )
