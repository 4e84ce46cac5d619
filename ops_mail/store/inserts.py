"""Multi-row INSERTs in statements small enough for the event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

STATEMENT_BYTES = 256 * 1024
"""A MySQL driver turns a whole statement into text before the loop runs again; this is a few milliseconds' worth."""


async def insert_many(
    connection: AsyncConnection,
    table: sa.Table,
    rows: Sequence[dict[str, Any]],
    size_of: Callable[[dict[str, Any]], int],
) -> None:
    """Inserts `rows` in order, so many a statement that their estimated sizes stay below STATEMENT_BYTES."""
    group: list[dict[str, Any]] = []
    room = STATEMENT_BYTES
    for row in rows:
        size = size_of(row)
        if group and size > room:
            await connection.execute(sa.insert(table), group)
            group, room = [], STATEMENT_BYTES
        group.append(row)
        room -= size
    if group:
        await connection.execute(sa.insert(table), group)
