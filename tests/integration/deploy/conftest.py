"""The databases that grants are tried on: each named target."""

from tests.servers.fixtures import pytest_generate_tests, sql_server

__all__ = ["pytest_generate_tests", "sql_server"]
