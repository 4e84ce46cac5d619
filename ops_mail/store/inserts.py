"""Multi-row INSERTs in statements small enough for the event loop.

MySQL's Python drivers turn a statement and its values into one text before they let the loop run again, and they
escape character by character: 256 KiB of a compressed mail take aiomysql ten times longer than the same as hex digits.
So long values travel as hex, and a statement holds a few milliseconds' worth of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.asyncio import AsyncConnection

STATEMENT_BYTES = 256 * 1024
_MAX_ROWS = 64

HEX_TEXT = "CONVERT(UNHEX(%s) USING utf8mb4)"
_HEX_BYTES = "UNHEX(%s)"

Row = dict[str, Any]


async def insert_many(
    connection: AsyncConnection, table: sa.Table, rows: Sequence[Row], size_of: Callable[[Row], int]
) -> None:
    """Inserts `rows`, which all have the same columns, in order; `size_of` estimates one's bytes."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        await connection.execute(sa.insert(table), rows)  # its driver works in a thread, with the values as they are
        return
    columns = [table.c[name] for name in rows[0]]
    encoders = [_encoder(column, connection.dialect) for column in columns]
    for group in _groups(rows, size_of):
        values = [encode(row[column.name]) for row in group for column, encode in zip(columns, encoders, strict=True)]
        await connection.exec_driver_sql(_statement(table, columns, len(group)), tuple(values))


def hex_text(text: str) -> str:
    """What to bind where `HEX_TEXT` stands."""
    return text.encode().hex()


def _statement(table: sa.Table, columns: Sequence[sa.Column[Any]], rows: int) -> str:
    names = ", ".join(f"`{column.name}`" for column in columns)
    row = ", ".join(_place(column) for column in columns)
    return f"INSERT INTO `{table.name}` ({names}) VALUES {', '.join([f'({row})'] * rows)}"  # noqa: S608 - our own names


def _place(column: sa.Column[Any]) -> str:
    if isinstance(column.type, sa.LargeBinary):
        return _HEX_BYTES
    return HEX_TEXT if isinstance(column.type, sa.Text | sa.JSON) else "%s"


def _encoder(column: sa.Column[Any], dialect: Dialect) -> Callable[[Any], Any]:
    processor: Callable[[Any], Any] | None = column.type.dialect_impl(dialect).bind_processor(dialect)
    if isinstance(column.type, sa.LargeBinary):
        return lambda value: None if value is None else bytes(value).hex()
    prepare = processor or (lambda value: value)
    if isinstance(column.type, sa.Text | sa.JSON):
        return lambda value: None if value is None else hex_text(prepare(value))
    return prepare


def _groups(rows: Sequence[Row], size_of: Callable[[Row], int]) -> Iterator[Sequence[Row]]:
    """By size, and in powers of two: so few different statements are checked and remembered once."""
    start = 0
    while start < len(rows):
        end, room = start, STATEMENT_BYTES
        while end < len(rows) and end - start < _MAX_ROWS and (end == start or size_of(rows[end]) <= room):
            room -= size_of(rows[end])
            end += 1
        count = 1 << ((end - start).bit_length() - 1)
        yield rows[start : start + count]
        start += count
