"""Whole-process tests run on both named targets; SQLite has the store's own tests."""

from __future__ import annotations

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "database_url" in metafunc.fixturenames:
        servers = ["mariadb"] if metafunc.config.getoption("--without-mysql") else ["mariadb", "mysql"]
        metafunc.parametrize("database_url", servers, indirect=True)


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh database on each named target."""
    return str(request.getfixturevalue(request.param).create_database())
