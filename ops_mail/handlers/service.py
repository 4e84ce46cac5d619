"""The handlers of one process: claim, start, keep, write down, and hand everything back at the end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection
from typing import Any

import structlog

from ops_mail.core.outcome import AttemptOutcome
from ops_mail.handlers.attempt import AttemptRules
from ops_mail.handlers.claiming import Claiming, ClaimTools, News
from ops_mail.handlers.content import ContentSource
from ops_mail.handlers.handing_back import FLUSH_SHARE, hand_back
from ops_mail.handlers.hands import Hands
from ops_mail.handlers.jobs import Executor
from ops_mail.handlers.loading import LoadedHandler
from ops_mail.handlers.parts import HandlerParts
from ops_mail.handlers.recovery import recover_stale_mails
from ops_mail.handlers.slots import LeftBehind, Slots, SlotTools
from ops_mail.handlers.writing import OutcomeWriter
from ops_mail.settings import HandlerOrder, HandlerSettings
from ops_mail.store.handling import HandlingStore

log = structlog.get_logger("ops_mail.handlers")

_SWITCH_SECONDS = 0.0005
_EXECUTOR_END_SECONDS = 0.5


class HandlerService:
    """`run` ends only with a stop, cancellation or a bug. Nothing in here waits for a handler on the main loop."""

    def __init__(self, handler: LoadedHandler, settings: HandlerSettings, parts: HandlerParts) -> None:
        self._handler = handler
        self._settings = settings
        self._parts = parts
        self._in_order = settings.order is HandlerOrder.UID
        self._store = HandlingStore(parts.store, in_order=self._in_order, max_attempts=settings.max_attempts)
        self._rules = AttemptRules(
            timeout_seconds=settings.timeout_seconds,
            max_attempts=settings.max_attempts,
            process_end_seconds=parts.grace_seconds + 1.0,
            stop_patience_seconds=parts.grace_seconds * FLUSH_SHARE / 2,
        )
        # These outlive a restart of this part after a bug: a landing may wake it at any time, and a thread that
        # cannot be ended still runs.
        self._news = News()
        self._left_behind: dict[int, LeftBehind] = {}

    def wake(self) -> None:
        """A mail has landed in this process: look for it at once. Cheap; on the main loop."""
        self._news.look()

    async def close(self) -> None:
        """`run` closes what it opened; there is nothing else."""

    async def run(self) -> None:
        """See the class."""
        if not await self._schema_is_ready():
            return
        self._begin()
        claiming = asyncio.create_task(self._claiming.run(), name="handlers: claiming")
        helpers: list[asyncio.Task[Any]] = [
            claiming,
            asyncio.create_task(self._hands.keep(), name="handlers: leases"),
            asyncio.create_task(self._writer.run(), name="handlers: outcomes"),
            asyncio.create_task(recover_stale_mails(self._store, self._parts), name="handlers: recovery"),
            asyncio.create_task(self._parts.stop.wait(), name="handlers: stop"),
        ]
        grace_seconds = self._parts.grace_seconds
        try:
            done, _ = await asyncio.wait(helpers, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a bug in a helper: the supervisor tells it and starts the part again
            # Not cancelled: a claim that is committed just now would be in nobody's hands until its lease ran out.
            self._news.look()
            await asyncio.wait([claiming], timeout=grace_seconds * FLUSH_SHARE)
            self._parts.pulse.expect(grace_seconds, "stopping")
            await hand_back(self._slots, self._store, self._hands, self._writer, grace_seconds)
        finally:
            self._parts.pulse.rest()
            await _end([*helpers, *self._slots.running])
            self._slots.forget()
            await self._executor.close(_EXECUTOR_END_SECONDS)

    async def _schema_is_ready(self) -> bool:
        while not self._parts.stop.is_set():
            self._parts.pulse.expect(10, "waiting for the tables")
            try:
                async with asyncio.timeout(0.5):
                    await self._parts.schema_ready.wait()
            except TimeoutError:
                continue
            return not self._parts.stop.is_set()
        self._parts.pulse.rest()
        return False

    def _begin(self) -> None:
        """All that belongs to one run of this part; a crashed run leaves nothing to the next."""
        parts, settings, store = self._parts, self._settings, self._store
        self._executor: Executor = self._handler.executor()
        self._hands = hands = Hands(store, parts.clock.mono)
        self._writer = writer = OutcomeWriter(store, hands, parts.metrics, settings.max_attempts, self._written)
        source = ContentSource(asyncio.get_running_loop(), store.content)
        self._slots = Slots(
            settings.concurrency,
            SlotTools(store, source, self._executor, hands, writer, self._rules),
            parts,
            self._left_behind,
            self._freed,
        )
        tools = ClaimTools(self._handler.name, self._in_order, store, hands, writer, self._slots, self._news)
        self._claiming = Claiming(tools, parts)
        for outcome in AttemptOutcome:
            parts.metrics.handler_attempts.labels(outcome=outcome.value)
        if self._handler.in_threads:
            # A thread that computes gives the interpreter back after this long; the default of 5 ms, times the number
            # of such threads, is what each step of the main loop would have to wait.
            sys.setswitchinterval(_SWITCH_SECONDS)
        log.info("handlers_started", handler=self._handler.name, concurrency=settings.concurrency,
                 order=settings.order.value)  # fmt: skip

    # The slots and the writer tell the claiming, which works with both and so is made after them.

    def _freed(self, pause_seconds: float) -> None:
        self._claiming.freed(pause_seconds)

    def _written(self, suspect: bool) -> None:
        self._claiming.written(suspect)


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
