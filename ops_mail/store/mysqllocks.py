"""Named locks on one MySQL connection of their own: whoever loses the connection loses the locks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
import sqlalchemy.exc as sa_exc
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.errors import StoreError
from ops_mail.store.database import Database
from ops_mail.store.edge import edge

log = structlog.get_logger("ops_mail.store.guard")


class MySqlLocks:
    """GET_LOCK on a dedicated autocommit connection, one statement at a time.

    The session's wait_timeout is the lease: a process that is frozen or cut off for longer is dropped by the server
    itself, which frees the locks. A broken connection is never replaced while a lock was held on it without telling:
    `held` says no first.
    """

    def __init__(self, database: Database, lease_seconds: float) -> None:
        self._engine = database.lone_engine(idle_seconds=lease_seconds)
        # An answer that takes half a lease is as good as none: the other half is for noticing.
        self._limit_seconds = max(1.0, lease_seconds / 2)
        self._connection: AsyncConnection | None = None
        self._names: set[str] = set()
        self._busy = asyncio.Lock()

    async def schema(self) -> str:
        """The name of the database that the connection uses."""
        async with self._busy:
            return str(await self._scalar("SELECT DATABASE()", {}))

    async def acquire(self, name: str) -> bool:
        """True if the lock is ours now; False if another session has it. Raises StoreUnavailable."""
        async with self._busy:
            if self._names and not await self._owns(self._names):
                self._drop()
            if name in self._names:
                return True
            if await self._scalar("SELECT GET_LOCK(:name, 0)", {"name": name}) != 1:
                return False
            self._names.add(name)
            return True

    async def release(self, name: str) -> None:
        """Frees the lock if it is ours. Raises StoreUnavailable; the lock is gone even then."""
        async with self._busy:
            if name in self._names:
                self._names.discard(name)
                await self._scalar("SELECT RELEASE_LOCK(:name)", {"name": name})

    async def held(self, names: Iterable[str]) -> set[str]:
        """Which of `names` the server says are ours; none if it does not answer. Never raises a StoreError."""
        async with self._busy:
            if self._connection is None or not await self._owns(self._names):
                self._drop()
            return self._names & set(names)

    async def close(self, timeout_seconds: float) -> None:
        """Ends the session and so every lock on it. Never raises."""
        async with self._busy:
            connection, self._connection = self._connection, None
            self._names.clear()
            if connection is not None:
                try:
                    async with asyncio.timeout(timeout_seconds):
                        await connection.close()
                except (TimeoutError, sa_exc.SQLAlchemyError, OSError) as error:
                    log.warning("guard_close_failed", error=type(error).__name__)
                    await _discard(connection)
        await self._engine.dispose(close=False)

    async def _owns(self, names: set[str]) -> bool:
        """Whether the session still has all of `names`; asks the server in any case, which also keeps it alive."""
        ordered = sorted(names)
        parts = [f"COALESCE(IS_USED_LOCK(:n{index}) = CONNECTION_ID(), 0)" for index in range(len(ordered))]
        values = {f"n{index}": name for index, name in enumerate(ordered)}
        try:
            owned = await self._scalar(f"SELECT {' + '.join(['0', *parts])}", values)
        except StoreError as error:
            log.warning("guard_connection_lost", error=str(error))
            return False
        return bool(owned == len(ordered))

    async def _scalar(self, statement: str, values: Mapping[str, Any]) -> Any:
        try:
            async with edge("the guard's connection", self._limit_seconds):
                if self._connection is None:
                    self._connection = await self._engine.connect()
                return (await self._connection.execute(sa.text(statement), values)).scalar()
        except BaseException:  # whatever went wrong, cancellation included: what the session still holds is unknown
            self._drop()
            raise

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        self._names.clear()
        if connection is not None:
            task = asyncio.ensure_future(_discard(connection))
            _discarding.add(task)
            task.add_done_callback(_discarding.discard)


_discarding: set[asyncio.Future[None]] = set()


async def _discard(connection: AsyncConnection) -> None:
    try:
        if not connection.closed:
            await connection.invalidate()
            await connection.close()
    except (sa_exc.SQLAlchemyError, OSError) as error:
        log.debug("guard_discard_failed", error=type(error).__name__)
