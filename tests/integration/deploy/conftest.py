"""The databases that grants are tried on."""

from __future__ import annotations

import pytest

from tests.servers.process import SqlServer


@pytest.fixture(params=["mariadb", "mysql"])
def sql_server(request: pytest.FixtureRequest) -> SqlServer:
    """Each named target."""
    if request.param == "mysql" and request.config.getoption("--without-mysql"):
        pytest.skip("asked for by --without-mysql")
    server = request.getfixturevalue(request.param)
    assert isinstance(server, SqlServer)
    return server
