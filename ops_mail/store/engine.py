"""Engines: how a URL becomes connections with the right session settings."""

from __future__ import annotations

import json
import math
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import structlog
from sqlalchemy import event, pool
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.util.concurrency import in_greenlet

from ops_mail.errors import ConfigError
from ops_mail.store.pool_log import tell_in_one_line
from ops_mail.store.tableguard import install_table_guard

log = structlog.get_logger("ops_mail.store")

CONNECT_SECONDS = 10
LOCK_WAIT_SECONDS = 5
POOL_SIZE = 5
POOL_OVERFLOW = 15
POOL_WAIT_SECONDS = 10
MYSQL_NAMES = ("mysql", "mariadb")
_DRIVERS = {
    "sqlite+aiosqlite",
    *(f"{name}+{driver}" for name in MYSQL_NAMES for driver in ("aiomysql", "asyncmy")),
}
SQL_MODE = "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"


@dataclass(frozen=True, slots=True)
class Session:
    """Limits of a server session, in seconds. `statement_seconds` 0 = none.

    `idle_seconds`: after so long without a statement the server itself closes the session and rolls back: a process
    that was frozen in the middle of a transaction does not keep its locks.
    """

    idle_seconds: float
    statement_seconds: float
    lock_wait_seconds: float = LOCK_WAIT_SECONDS


def parse_url(url: str) -> URL:
    """Raises ConfigError, without repeating the URL (it holds a password), unless the dialect is one of ours."""
    try:
        parsed = make_url(url)
    except sa.exc.ArgumentError:
        raise ConfigError(["OPS_MAIL_DATABASE_URL: not a database URL"]) from None
    if parsed.drivername == "sqlite":
        parsed = parsed.set(drivername="sqlite+aiosqlite")
    elif parsed.drivername in MYSQL_NAMES:
        parsed = parsed.set(drivername=f"{parsed.drivername}+aiomysql")
    if parsed.drivername in _DRIVERS:
        return _anchored(parsed)
    raise ConfigError(
        [f"OPS_MAIL_DATABASE_URL: {parsed.drivername} is not one of sqlite+aiosqlite, mysql+aiomysql, mysql+asyncmy"]
    )


def _anchored(url: URL) -> URL:
    """A file named from the current folder stays that file when a handler changes the folder of the process."""
    if is_mysql(url) or is_memory(url) or str(url.database).startswith("file:"):
        return url
    return url.set(database=str(Path(str(url.database)).absolute()))


def is_mysql(url: URL) -> bool:
    """Whether the URL names MySQL or MariaDB."""
    return url.get_backend_name() in MYSQL_NAMES


def init_command(session: Session) -> str:
    """One SET that suits both servers: each runs the comment that is meant for it and skips the other.

    MariaDB ignores versioned comments of 5.7 and above, MySQL every `/*M!`; so there is no need to ask which it is.
    MariaDB's limit holds for every statement and counts seconds, MySQL's for SELECT alone and counts milliseconds.
    """
    return (
        f"SET SESSION sql_mode='{SQL_MODE}', time_zone='+00:00',"
        f" innodb_lock_wait_timeout={max(1, math.ceil(session.lock_wait_seconds))},"
        f" wait_timeout={max(1, math.ceil(session.idle_seconds))}"
        f" /*M!100100 , max_statement_time={session.statement_seconds:g} */"
        f" /*!80000 , max_execution_time={round(session.statement_seconds * 1000)} */"
    )


def build_engine(url: URL, session: Session, *, pooled: bool, autocommit: bool = False) -> AsyncEngine:
    """An engine whose connections all carry `session`; nothing connects yet. Not pooled = one connection a checkout."""
    options: dict[str, Any] = {"json_serializer": _dump_json, "hide_parameters": True}
    if not pooled:
        options["poolclass"] = pool.NullPool
    elif is_mysql(url):
        options |= {
            "pool_size": POOL_SIZE,
            "max_overflow": POOL_OVERFLOW,
            "pool_timeout": POOL_WAIT_SECONDS,
            "pool_pre_ping": True,
            "pool_recycle": max(1, math.floor(session.idle_seconds * 0.8)),
        }
    elif is_memory(url):
        # One connection is one database, so it is shared in turn (the default, StaticPool, would mix transactions).
        options |= {"poolclass": pool.AsyncAdaptedQueuePool, "pool_size": 1, "max_overflow": 0}
    else:
        options |= {"pool_size": POOL_SIZE, "max_overflow": POOL_OVERFLOW, "pool_timeout": POOL_WAIT_SECONDS}
    if is_mysql(url):
        options["isolation_level"] = "AUTOCOMMIT" if autocommit else "READ COMMITTED"
        options["connect_args"] = {
            "charset": "utf8mb4",
            "connect_timeout": CONNECT_SECONDS,
            "init_command": init_command(session),
        }
    engine = create_async_engine(url, **options)
    if is_mysql(url):
        _abort_when_invalid(engine)
    else:
        _prepare_sqlite(engine, session)
        _roll_back_when_invalid(engine)
    install_table_guard(engine.sync_engine)
    tell_in_one_line(engine.sync_engine.pool)
    return engine


def is_memory(url: URL) -> bool:
    """Whether the URL is a SQLite database in memory, which lives as long as its one connection."""
    return not is_mysql(url) and url.database in (None, "", ":memory:")


def _dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _abort_when_invalid(engine: AsyncEngine) -> None:
    """An invalidated connection is cut, not closed politely: QUIT to a frozen server would wait for ever.

    The transport is remembered from the start: a driver that is cancelled forgets it while unsent data keeps it open.
    """

    @event.listens_for(engine.sync_engine, "connect")
    def remember(connection: Any, record: ConnectionPoolEntry) -> None:
        driver = connection._connection  # noqa: SLF001 - SQLAlchemy offers no other way to the driver's object
        writer = getattr(driver, "_writer", None)  # aiomysql
        record.info["transport"] = getattr(writer, "transport", None) or getattr(driver, "_transport", None)  # asyncmy

    @event.listens_for(engine.sync_engine, "invalidate")
    def cut(_connection: Any, record: ConnectionPoolEntry, _error: BaseException | None) -> None:
        transport = record.info.get("transport")
        if transport is not None:
            transport.abort()

    def terminate(connection: Any) -> None:
        connection._terminate_force_close()  # noqa: SLF001 - what its own terminate() falls back to

    def close(connection: Any) -> None:
        try:
            connection.close()
        except OSError:  # the server has ended it before us; the driver stops half way and would never close its side
            terminate(connection)

    dialect: Any = engine.sync_engine.dialect  # its methods are the one hook there is
    dialect.do_terminate = terminate
    dialect.do_close = close


def _roll_back_when_invalid(engine: AsyncEngine) -> None:
    """A SQLite connection that is given up is rolled back before it is closed.

    Closing is not enough: while a statement of it is referred to (by the traceback of what was cancelled, until the
    garbage collector comes) SQLite keeps the file open, and with it the lock of the transaction.
    """
    dialect: Any = engine.sync_engine.dialect  # its methods are the one hook there is
    terminate = dialect.do_terminate

    def roll_back_and_terminate(connection: Any) -> None:
        try:
            if in_greenlet():  # else it is the garbage collector that closes, and nothing can be waited for
                connection.rollback()
        except (sqlite3.Error, ValueError) as error:  # ValueError: it is closed already
            log.debug("rollback_failed", error=str(error))
        finally:
            terminate(connection)

    dialect.do_terminate = roll_back_and_terminate


def _prepare_sqlite(engine: AsyncEngine, session: Session) -> None:
    wait_ms = round(session.lock_wait_seconds * 1000)

    @event.listens_for(engine.sync_engine, "connect")
    def on_connect(connection: DBAPIConnection, _record: object) -> None:
        connection.isolation_level = None  # BEGIN is sent by us, below, never by the driver
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={wait_ms}")
        cursor.execute("PRAGMA journal_mode")
        row = cursor.fetchone()
        if row is not None and row[0] not in ("wal", "memory"):
            cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")  # WAL alone may lose the last commits at a power cut
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def on_begin(connection: Connection) -> None:
        mode = connection.get_execution_options().get("sqlite_begin", "DEFERRED")
        connection.exec_driver_sql(f"BEGIN {mode}")
