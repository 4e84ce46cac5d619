"""The latest look at the database, taken in the background while somebody looks at the page; never for one request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from ops_mail.errors import StoreError
from ops_mail.store.overview_model import Overview

log = structlog.get_logger("ops_mail.web")

EVERY_SECONDS = 5.0
_STOP_SECONDS = 1.0
INTEREST_SECONDS = 15.0
"""How long after the last request somebody counts as looking: a page without script reloads every 10 s."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen last: an overview, or an error; neither before the first look."""

    overview: Overview | None = None
    error: str | None = None


class DatabaseLook:
    """Holds the latest `Look` in `latest`. `mono` is a clock in seconds that never jumps."""

    def __init__(self, mono: Callable[[], float], every_seconds: float = EVERY_SECONDS) -> None:
        self._mono = mono
        self._every_seconds = every_seconds
        self._interest_until = float("-inf")
        self._looked_at = float("-inf")
        self._wanted = asyncio.Event()
        self._looked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.latest = Look()
        self.on_change: Callable[[], None] = lambda: None

    def start(self, read: Callable[[], Awaitable[Overview]], ready: asyncio.Event) -> None:
        """From now on `read` is asked, once `ready` is set (the tables exist)."""
        self._task = asyncio.create_task(self._run(read, ready), name="database look")

    async def stop(self) -> None:
        """Asks no more, and forgets: what the page shows from now on is memory alone."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_STOP_SECONDS)
            self._task = None
        self._show(Look())

    def touch(self) -> None:
        """Somebody looks."""
        self._interest_until = self._mono() + INTEREST_SECONDS
        self._wanted.set()

    async def fresh(self, patience_seconds: float) -> None:
        """Somebody looks: waits for the first look after a time without readers, but not on a database that is down."""
        self.touch()
        is_old = self._mono() - self._looked_at > 2 * self._every_seconds
        if self._task is None or not is_old or self.latest.error is not None:
            return
        looked = self._looked
        try:
            async with asyncio.timeout(patience_seconds):
                await looked.wait()
        except TimeoutError:
            return

    async def _run(self, read: Callable[[], Awaitable[Overview]], ready: asyncio.Event) -> None:
        await ready.wait()
        while True:
            await self._wanted.wait()
            if self._mono() > self._interest_until:
                self._wanted.clear()
                continue
            look = await self._look(read)
            self._looked_at = self._mono()
            self._show(look)
            self._looked.set()
            self._looked = asyncio.Event()
            await asyncio.sleep(self._every_seconds)

    def _show(self, look: Look) -> None:
        """`look` is what holds from now on, and whoever kept a picture of the one before is told."""
        self.latest = look
        self.on_change()

    async def _look(self, read: Callable[[], Awaitable[Overview]]) -> Look:
        try:
            return Look(overview=await read())
        except StoreError as error:  # told loudly by the watch over the database; here it is shown
            log.debug("database_look_failed", error=str(error))
            return Look(error=str(error))
        except Exception as error:  # the supervising level: a bug here must not end the page's task
            log.exception("database_look_crashed")
            return Look(error=f"internal error ({type(error).__name__}), see the log")
