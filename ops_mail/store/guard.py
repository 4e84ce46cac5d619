"""The guard of each folder: one instance listens, the others stand by. Safety rests on the epoch, not on this."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol, TypeVar

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.guardname import guard_name
from ops_mail.core.ids import Epoch, FolderKey
from ops_mail.errors import GuardLost, StoreError
from ops_mail.store.cursors import give_up, read_epochs, take_epoch
from ops_mail.store.database import Database
from ops_mail.store.model import Lease
from ops_mail.store.mysqllocks import MySqlLocks

log = structlog.get_logger("ops_mail.store.guard")
Result = TypeVar("Result")


class _HasDatabase(Protocol):
    @property
    def database(self) -> Database: ...


class Guard:
    """Takes and keeps folders for one process (`holder`, e.g. `host:pid:uuid`).

    MySQL: a named lock per folder on one connection of its own. SQLite: the lease in the cursor's row.
    The caller prolongs each lease with `Store.heartbeat` and asks `lost` at least every third of a lease.
    """

    def __init__(self, store: _HasDatabase, holder: str, lease_seconds: float) -> None:
        self._database = store.database
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._locks = MySqlLocks(store.database, lease_seconds) if store.database.mysql else None
        self._epochs: dict[FolderKey, Epoch] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._schema: str | None = None

    async def try_acquire(self, key: FolderKey) -> Lease | None:
        """The folder's lease at a new epoch, or None while somebody else holds it. Raises StoreError.

        A cancelled call gives back what it may still get.
        """
        task = self._spawn(self._acquire(key))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # Cancelling the statement itself would cost the connection and with it every other folder's lock.
            self._spawn(self._give_back(task))
            raise

    async def release(self, lease: Lease) -> None:
        """Lets another instance have the folder at once, as far as the database can be reached. Logs, never raises."""
        await asyncio.shield(self._spawn(self._release(lease)))

    async def lost(self, leases: Iterable[Lease]) -> set[FolderKey]:
        """Which of `leases` are no longer ours: all on MySQL when the lock's connection died. Never raises StoreError."""
        return await asyncio.shield(self._spawn(self._lost(list(leases))))

    async def check(self) -> None:
        """Raises GuardLost, naming the folders, unless everything that was acquired and not released is still held."""
        leases = [Lease(key, 0, epoch, self._holder) for key, epoch in self._epochs.items()]
        gone = await self.lost(leases)
        if gone:
            raise GuardLost(f"the guard is lost: {', '.join(sorted(map(str, gone)))}")

    async def close(self) -> None:
        """Ends the lock connection; what was held is free then. Bounded, never raises."""
        pending = [task for task in self._tasks if not task.done()]
        if pending:
            await asyncio.wait(pending, timeout=2.0)
            for task in pending:
                task.cancel()
        if self._locks is not None:
            await self._locks.close()
        self._epochs.clear()

    async def _acquire(self, key: FolderKey) -> Lease | None:
        if self._locks is None:
            return await self._take(key, only_if_free=True)
        name = await self._name(key)
        if not await self._locks.acquire(name):
            return None
        try:
            return await self._take(key, only_if_free=False)
        except BaseException:  # without an epoch the lock would only keep others out
            await self._unlock(name)
            raise

    async def _take(self, key: FolderKey, *, only_if_free: bool) -> Lease | None:
        async def work(connection: AsyncConnection) -> Lease | None:
            return await take_epoch(connection, key, self._holder, self._lease_seconds, only_if_free=only_if_free)

        lease = await self._database.writing("taking the guard", work)
        if lease is not None:
            self._epochs[key] = lease.epoch
        return lease

    async def _give_back(self, task: asyncio.Task[Lease | None]) -> None:
        try:
            lease = await task
        except StoreError:
            return
        if lease is not None:
            await self._release(lease)

    async def _release(self, lease: Lease) -> None:
        async def work(connection: AsyncConnection) -> None:
            await give_up(connection, lease)

        try:
            await self._database.writing("releasing the guard", work, limit_seconds=5.0)
        except StoreError as error:
            log.warning("guard_release_failed", folder=str(lease.key), error=str(error))
        if self._epochs.get(lease.key) != lease.epoch:
            return  # taken again at a newer epoch meanwhile: that lock is not this lease's
        del self._epochs[lease.key]
        if self._locks is not None:
            await self._unlock(await self._name(lease.key))

    async def _unlock(self, name: str) -> None:
        assert self._locks is not None  # noqa: S101 - callers have checked
        try:
            await self._locks.release(name)
        except StoreError as error:
            log.warning("guard_release_failed", lock=name, error=str(error))

    async def _lost(self, leases: list[Lease]) -> set[FolderKey]:
        if self._locks is None:
            return await self._lost_rows(leases)
        # Asked even without a lease: the question keeps the session alive.
        names = {lease.key: await self._name(lease.key) for lease in leases}
        held = await self._locks.held(names.values())
        gone = {
            lease.key
            for lease in leases
            if names[lease.key] not in held or self._epochs.get(lease.key) != lease.epoch
        }
        for lease in leases:
            if lease.key in gone and self._epochs.get(lease.key) == lease.epoch:
                del self._epochs[lease.key]
        return gone

    async def _lost_rows(self, leases: list[Lease]) -> set[FolderKey]:
        try:
            async with self._database.reading("checking the guard") as connection:
                epochs = await read_epochs(connection)
        except StoreError as error:
            # Nobody can take the folder from a database that does not answer; the heartbeat will tell.
            log.warning("guard_check_failed", error=str(error))
            return set()
        return {lease.key for lease in leases if epochs.get(lease.key) != lease.epoch}

    async def _name(self, key: FolderKey) -> str:
        assert self._locks is not None  # noqa: S101 - callers have checked
        if self._schema is None:
            self._schema = await self._locks.schema()
        return guard_name(self._schema, key)

    def _spawn(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
