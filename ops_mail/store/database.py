"""One database: its pool, and the only three ways in which the store talks to it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import sqlalchemy as sa
import sqlalchemy.exc as sa_exc
import structlog
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ops_mail.core.audit_action import AuditAction
from ops_mail.store.audit import take_noted
from ops_mail.store.edge import STATEMENT_SECONDS, edge, is_contention
from ops_mail.store.engine import Session, build_engine, is_memory, is_mysql
from ops_mail.store.rows import RowLimits

log = structlog.get_logger("ops_mail.store")
Result = TypeVar("Result")

MIN_IDLE_SECONDS = 30.0
SERVER_STATEMENT_SECONDS = 60.0
"""The server's own limit: a statement that we gave up still runs there and keeps its locks until then."""
RETRY_PAUSES = (0.05, 0.2, 0.8)
LONG_IDLE_SECONDS = 3600.0
LONG_LOCK_WAIT_SECONDS = 60.0


class Database:
    """An engine and its pool. Nothing connects until something is asked."""

    def __init__(self, url: URL, lease_seconds: float) -> None:
        self.url = url
        self.lease_seconds = lease_seconds
        self.mysql = is_mysql(url)
        # A frozen process's open transaction must not outlive its lease for long: the server rolls it back by itself.
        idle = max(2 * lease_seconds, MIN_IDLE_SECONDS)
        self.engine = build_engine(url, Session(idle, SERVER_STATEMENT_SECONDS), pooled=True)
        self._row_limits: RowLimits | None = None
        self.on_audit: Callable[[AuditAction], None] = lambda _action: None
        """Called for each audit row that was committed."""

    def lone_engine(self, *, idle_seconds: float, lock_wait_seconds: float = LONG_LOCK_WAIT_SECONDS) -> AsyncEngine:
        """An engine for one long-lived autocommit connection outside the pool (guard, migration), without limits."""
        if is_memory(self.url):
            return self.engine  # a second connection would be a second database
        session = Session(idle_seconds, 0, lock_wait_seconds)
        return build_engine(self.url, session, pooled=False, autocommit=True)

    @asynccontextmanager
    async def reading(self, what: str, limit_seconds: float = STATEMENT_SECONDS) -> AsyncIterator[AsyncConnection]:
        """A connection for SELECTs. Errors come out as StoreError; `what` begins their message."""
        async with edge(what, limit_seconds), self._connection() as connection:
            yield connection

    async def writing(
        self, what: str, work: Callable[[AsyncConnection], Awaitable[Result]], limit_seconds: float = STATEMENT_SECONDS
    ) -> Result:
        """Runs `work` in one transaction and commits it.

        After a deadlock, a lock wait that ran out or a duplicate key (another writer was faster) all of `work` is run
        again, a few times; so it must have no effect outside the transaction. Errors come out as StoreError.
        """
        async with edge(what, limit_seconds):
            for pause in RETRY_PAUSES:
                try:
                    return await self._transaction(work)
                except sa_exc.DBAPIError as error:
                    if not is_contention(error):
                        raise
                    log.info("transaction_retried", what=what, error=type(error.orig).__name__)
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
            return await self._transaction(work)

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[Result]]) -> Result:
        async with self._connection() as connection:
            writer = await connection.execution_options(sqlite_begin="IMMEDIATE")
            take_noted(writer)  # of a transaction that failed
            async with writer.begin():
                result = await work(writer)
            for action in take_noted(writer):
                self.on_audit(action)
            return result

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection]:
        async with self.engine.connect() as connection:
            try:
                yield connection
            except asyncio.CancelledError:
                # Given up in mid-statement, or between two: what the session is at is unknown, and a ROLLBACK to a
                # server that does not answer would wait without limit. The server rolls back when the line is cut.
                await connection.invalidate()
                raise

    async def row_limits(self, connection: AsyncConnection) -> RowLimits:
        """How large a mail's row may be for this server; asked once."""
        if self._row_limits is None:
            if self.mysql:
                packet = (await connection.execute(sa.text("SELECT @@max_allowed_packet"))).scalar_one()
                self._row_limits = RowLimits.for_packet(int(packet))
            else:
                self._row_limits = RowLimits()
        return self._row_limits

    async def close(self, timeout_seconds: float) -> None:
        """Closes the pool within `timeout_seconds`; what does not close in time is abandoned and logged."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self.engine.dispose()
        except (TimeoutError, sa_exc.SQLAlchemyError, OSError) as error:
            log.warning("database_close_failed", error=type(error).__name__)
            await self.engine.dispose(close=False)
