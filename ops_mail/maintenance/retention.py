"""Every few hours: contents of old handled mails go, and so does what nothing refers to any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from ops_mail.core.health import Pulse
from ops_mail.errors import StoreError
from ops_mail.store import Store
from ops_mail.store.blob_choice import delete_of
from ops_mail.store.blob_removal import remove_all_unused
from ops_mail.store.blobs_external import ExternalBlobs
from ops_mail.store.retention import remove_old_contents
from ops_mail.waiting import sleep_or_stop

log = structlog.get_logger("ops_mail.retention")

_EVERY_SECONDS = 6 * 3600.0
_ROUNDS_A_SWEEP = 4  # looking through all contents, unlike through old mails, takes as long as there are many
_FIRST_SECONDS = 60.0
_AFTER_FAILURE_SECONDS = 300.0
_BEAT_SECONDS = 5.0


class Retention:
    """Several processes may do this at once: each batch is locked, and what one has done the other finds done.

    `days` 0 keeps contents for ever; unused ones are collected all the same.
    """

    def __init__(
        self,
        store: Store,
        *,
        days: int,
        random: Callable[[], float],
        stop: asyncio.Event,
        schema_ready: asyncio.Event,
        pulse: Pulse,
    ) -> None:
        self._store = store
        self._days = days
        self._random = random
        self._stop = stop
        self._schema_ready = schema_ready
        self._pulse = pulse
        self._rounds = 0

    async def run(self) -> None:
        """Until the stop."""
        await self._wait(_FIRST_SECONDS * (0.5 + self._random()))
        while not self._stop.is_set():
            delay_seconds = await self._once() if self._schema_ready.is_set() else _FIRST_SECONDS
            await self._wait(delay_seconds * (0.75 + self._random() / 2))
        self._pulse.rest()

    async def _once(self) -> float:
        """One round; the time until the next."""
        work = asyncio.create_task(self.remove())
        try:
            while not work.done():
                # As long as there is much to do; each of its statements is bounded, so it cannot hang.
                self._pulse.expect(_BEAT_SECONDS, "removing old contents")
                await asyncio.wait({work}, timeout=_BEAT_SECONDS)
            work.result()
        except StoreError as error:
            log.warning("retention_failed", error=str(error))
            return _AFTER_FAILURE_SECONDS
        finally:
            work.cancel()
            await asyncio.wait({work})
        return _EVERY_SECONDS

    async def remove(self) -> None:
        """All that is due now. Raises StoreError; what was removed stays removed."""
        database, delete = self._store.database, delete_of(self._store)
        if self._days:
            removed = await remove_old_contents(database, self._days, self._stop, delete)
            if removed.mails:
                log.info("old_contents_removed", mails=removed.mails, blobs=removed.blobs, days=self._days)
        self._rounds += 1
        if self._rounds % _ROUNDS_A_SWEEP != 1:
            return
        unused = await remove_all_unused(database, self._stop, delete)
        orphans = 0
        if isinstance(self._store.blobs, ExternalBlobs):
            orphans = await self._store.blobs.remove_orphans(self._stop)
        if unused or orphans:
            log.info("unused_contents_removed", blobs=unused, orphans=orphans)

    async def _wait(self, seconds: float) -> None:
        self._pulse.expect(seconds, "waiting")
        await sleep_or_stop(seconds, self._stop)
