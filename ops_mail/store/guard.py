"""The guard of each folder: one instance listens, the others stand by. Safety rests on the epoch, not on this."""

from __future__ import annotations

import asyncio
from collections import defaultdict
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
        self._turns: defaultdict[FolderKey, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._schema: str | None = None

    async def try_acquire(self, key: FolderKey) -> Lease | None:
        """The folder's lease at a new epoch, or None while somebody else holds it. Raises StoreError.

        A cancelled call gives back what it may still get.
        """
        task = self._start(self._acquire(key))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # Cancelling the statement itself would cost the connection and with it every other folder's lock.
            task.add_done_callback(self._give_back)
            raise

    async def release(self, lease: Lease) -> None:
        """Lets another instance have the folder at once, as far as the database can be reached. Logs, never raises."""
        await asyncio.shield(self._start(self._release(lease)))

    async def lost(self, leases: Iterable[Lease]) -> set[FolderKey]:
        """Which of `leases` are no longer ours; on MySQL all of them once the locks' connection died.

        Asking also keeps that connection alive. Raises StoreUnavailable on SQLite alone, where it proves nothing: from
        a database that does not answer nobody can take the folder.
        """
        return await asyncio.shield(self._start(self._lost(list(leases))))

    async def verify(self, lease: Lease) -> None:
        """Raises GuardLost unless `lease` is still ours; StoreUnavailable as `lost`."""
        if await self.lost([lease]):
            raise GuardLost(f"{lease.key}: the guard is lost (epoch {lease.epoch})")

    async def close(self, timeout_seconds: float = 2.0) -> None:
        """Ends the locks' connection; what was held is free then. Logs, never raises."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        except TimeoutError:
            log.warning("guard_busy_at_close", tasks=len(self._tasks))
            for task in self._tasks:
                task.cancel()
        if self._locks is not None:
            await self._locks.close(timeout_seconds)
        self._epochs.clear()

    async def _acquire(self, key: FolderKey) -> Lease | None:
        # In turn with `_release`: a slow one would otherwise free the named lock of the lease that has just followed.
        async with self._turns[key]:
            return await self._acquire_in_turn(key)

    async def _acquire_in_turn(self, key: FolderKey) -> Lease | None:
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

    def _give_back(self, task: asyncio.Task[Lease | None]) -> None:
        if task.cancelled() or task.exception() is not None:
            return
        lease = task.result()
        if lease is not None:
            self._start(self._release(lease)).add_done_callback(_forget)

    async def _release(self, lease: Lease) -> None:
        async with self._turns[lease.key]:
            await self._release_in_turn(lease)

    async def _release_in_turn(self, lease: Lease) -> None:
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
        names = {lease.key: await self._name(lease.key) for lease in leases}
        held = await self._locks.held(names.values())
        for key, name in names.items():
            if name not in held:
                self._epochs.pop(key, None)
        return {lease.key for lease in leases if self._epochs.get(lease.key) != lease.epoch}

    async def _lost_rows(self, leases: list[Lease]) -> set[FolderKey]:
        async with self._database.reading("checking the guard") as connection:
            epochs = await read_epochs(connection)
        return {lease.key for lease in leases if epochs.get(lease.key) != lease.epoch}

    async def _name(self, key: FolderKey) -> str:
        assert self._locks is not None  # noqa: S101 - callers have checked
        if self._schema is None:
            self._schema = await self._locks.schema()
        return guard_name(self._schema, key)

    def _start(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _forget(_task: asyncio.Task[None]) -> None:
    """`_release` has logged whatever it had to say."""
