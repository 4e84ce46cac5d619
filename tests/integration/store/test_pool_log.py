"""A connection that breaks between a commit and its return to the pool: one line without a traceback."""

from __future__ import annotations

import asyncio
import logging

import pytest
import sqlalchemy as sa

from ops_mail.store import open_store
from tests.servers.mariadb import MariaDb


async def test_a_connection_that_breaks_before_its_return_is_one_line(
    mariadb: MariaDb, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(mariadb.create_database(), lease_seconds=30)
    try:
        async with store.database.engine.connect() as connection:
            async with connection.begin():
                number = (await connection.execute(sa.text("SELECT CONNECTION_ID()"))).scalar_one()
            mariadb.execute(f"KILL {number}")
            while mariadb.execute(f"SELECT 1 FROM information_schema.processlist WHERE id = {number}"):
                await asyncio.sleep(0.01)
        (record,) = [record for record in caplog.records if record.name.startswith("sqlalchemy.pool")]
        assert record.levelno == logging.WARNING
        assert record.exc_info is None
        assert "Lost connection" in record.getMessage()
        assert "\n" not in record.getMessage()
        async with store.database.reading("after it") as connection:
            assert (await connection.execute(sa.text("SELECT 1"))).scalar_one() == 1
    finally:
        await store.close(2)
