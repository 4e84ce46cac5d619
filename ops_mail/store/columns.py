"""Column types and SQL snippets that mean the same on SQLite, MariaDB and MySQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.compiler import SQLCompiler

MICROSECONDS = 1_000_000


class UtcDateTime(sa.TypeDecorator[datetime]):
    """A moment: aware (UTC) in Python, naive UTC with microseconds in the database."""

    impl = sa.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> sa.types.TypeEngine[Any]:
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(sa.DateTime())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - as given
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a naive datetime must not reach the database: which zone is it in?")
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - as given
        return None if value is None else value.replace(tzinfo=UTC)


class db_now(ColumnElement[datetime]):  # noqa: N801 - reads as the SQL function that it is
    """The database's own clock in UTC, `plus_seconds` from now: leases never compare two machines' clocks."""

    inherit_cache = False  # the offset is part of the text
    type = UtcDateTime()

    def __init__(self, plus_seconds: float = 0.0) -> None:
        super().__init__()
        self.plus_seconds = plus_seconds


@compiles(db_now, "mysql")
@compiles(db_now, "mariadb")
def _now_mysql(element: db_now, _compiler: SQLCompiler, **_kw: Any) -> str:
    if not element.plus_seconds:
        return "UTC_TIMESTAMP(6)"
    return f"(UTC_TIMESTAMP(6) + INTERVAL {round(element.plus_seconds * MICROSECONDS)} MICROSECOND)"


@compiles(db_now, "sqlite")
def _now_sqlite(element: db_now, _compiler: SQLCompiler, **_kw: Any) -> str:
    # SQLite knows milliseconds; padded to six digits because times are compared as text there.
    return f"(strftime('%Y-%m-%d %H:%M:%f', 'now', '{element.plus_seconds:+.3f} seconds') || '000')"


def key_text(length: int) -> sa.types.TypeEngine[str]:
    """Text that identifies something: case and accents count, as they do on an IMAP server."""
    return sa.String(length).with_variant(
        mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
    )


def ascii_text(length: int) -> sa.types.TypeEngine[str]:
    """Hashes, codes and other text of our own making: one byte a character."""
    return sa.String(length).with_variant(
        mysql.VARCHAR(length, charset="ascii", collation="ascii_bin"), "mysql", "mariadb"
    )


def long_text() -> sa.types.TypeEngine[str]:
    """Text of up to 16 MiB."""
    return sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")


def long_bytes() -> sa.types.TypeEngine[bytes]:
    """Bytes of up to 16 MiB."""
    return sa.LargeBinary().with_variant(mysql.MEDIUMBLOB(), "mysql", "mariadb")


def big_id() -> sa.types.TypeEngine[int]:
    """A growing 64-bit key (SQLite counts only INTEGER primary keys up by itself)."""
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def json_column() -> sa.types.TypeEngine[Any]:
    """A JSON value; None is SQL NULL."""
    return sa.JSON(none_as_null=True)
