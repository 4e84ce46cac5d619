"""Connections that the server has ended, when we close them: nothing of them stays open on our side."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa

from ops_mail.store.engine import Session, build_engine, parse_url
from tests.servers.process import SqlServer


async def test_a_connection_that_the_server_has_ended_is_closed_all_the_same(
    sql_server: SqlServer, caplog: pytest.LogCaptureFixture
) -> None:
    engine = build_engine(
        parse_url(sql_server.create_database()), Session(idle_seconds=1, statement_seconds=5), pooled=True
    )
    async with engine.connect() as connection:
        await connection.execute(sa.text("SELECT 1"))
        driver = (await connection.get_raw_connection()).driver_connection
    assert driver is not None
    transport = driver._writer.transport
    # Not one turn of our loop meanwhile, as in a process that was busy or frozen: it has not seen the end yet.
    time.sleep(2.2)
    await engine.dispose()
    assert driver.closed
    assert transport.is_closing()
    assert not caplog.records, "an end that is no news is not told"
