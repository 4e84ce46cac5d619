"""Faults are tried on both named targets, as whole processes are."""

from tests.integration.listener.conftest import database_url, pytest_generate_tests

__all__ = ["database_url", "pytest_generate_tests"]
