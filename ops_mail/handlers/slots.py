"""Mails that are claimed: those that wait for a slot, and the attempts that run in one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import structlog

from ops_mail.core.claim_size import Average
from ops_mail.handlers.attempt import Attempt, AttemptRules
from ops_mail.handlers.content import ContentSource
from ops_mail.handlers.gauges import HandlerGauges
from ops_mail.handlers.hands import Hands, Held
from ops_mail.handlers.jobs import Executor, Job
from ops_mail.handlers.parts import HandlerParts
from ops_mail.handlers.writing import OutcomeWriter
from ops_mail.store.attempts import Ended
from ops_mail.store.handling import HandlingStore
from ops_mail.store.stored_mail import StoredMail

log = structlog.get_logger("ops_mail.handlers")


@dataclass(frozen=True, slots=True)
class SlotTools:
    """What an attempt is made from and what takes its end."""

    store: HandlingStore
    source: ContentSource
    executor: Executor
    hands: Hands
    writer: OutcomeWriter
    rules: AttemptRules


@dataclass(slots=True)
class _Waiting:
    """Claimed and not started. `stored` is None for a large mail: read when its turn comes."""

    held: Held
    stored: StoredMail | None


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A handler that was given up and still runs; `until_mono`: so long its mail is not started beside it."""

    job: Job
    until_mono: float


class Slots:
    """At most `count` attempts at a time. On the main loop only; `on_free` is called whenever one has ended."""

    def __init__(
        self, concurrency: int, tools: SlotTools, parts: HandlerParts, left_behind: dict[int, LeftBehind],
        on_free: Callable[[float], None],
    ) -> None:  # fmt: skip
        self._concurrency = concurrency
        self._tools = tools
        self._parts = parts
        self._left_behind = left_behind
        self._on_free = on_free
        self._gauges = HandlerGauges(parts.metrics)
        self._waiting: deque[_Waiting] = deque()
        self._running: dict[asyncio.Task[Ended], Attempt] = {}
        self.average = Average()

    @property
    def count(self) -> int:
        """A hung handler's slot is replaced, but not without limit: each still holds what it holds."""
        spare = 2 * self._concurrency
        return self._concurrency - max(0, self.hung - spare)

    @property
    def hung(self) -> int:
        """Handlers that cannot be ended."""
        return self._tools.executor.hung

    @property
    def free(self) -> int:
        """Slots in which nothing runs."""
        return max(0, self.count - len(self._running))

    @property
    def waiting(self) -> int:
        """Mails that wait for a slot."""
        return len(self._waiting)

    @property
    def running(self) -> frozenset[asyncio.Task[Ended]]:
        """The attempts that run."""
        return frozenset(self._running)

    def left_running(self) -> frozenset[int]:
        """Mails whose attempt has ended while their handler still runs: not to be started beside it.

        But not for ever: a mail that hangs at each attempt has to end as dead, where an operator finds it.
        """
        now = self._parts.clock.mono()
        for pk in [pk for pk, one in self._left_behind.items() if one.job.future.done() or now > one.until_mono]:
            del self._left_behind[pk]
        return frozenset(self._left_behind)

    def add(self, held: list[Held], stored: dict[int, StoredMail]) -> None:
        """These are claimed now; they start as there is room."""
        self._waiting.extend(_Waiting(one, stored.get(one.claim.message_pk)) for one in held)
        self._start()

    def take_back_unstarted(self) -> list[Held]:
        """The mails that wait; none of them starts any more."""
        unstarted = [one.held for one in self._waiting]
        self._waiting.clear()
        return unstarted

    def abandon(self) -> int:
        """Asks all attempts to end at once; how many."""
        for attempt in self._running.values():
            attempt.stop_now.set()
        return len(self._running)

    def forget(self) -> None:
        """After all was cancelled: their leases run out by themselves."""
        self._running.clear()
        self._waiting.clear()

    def show(self) -> None:
        """Brings the gauges up to date."""
        self._gauges.running.set(len(self._running))
        self._gauges.hung.set(self.hung)
        self._gauges.unwritten.set(self._tools.writer.waiting)

    def _start(self) -> None:
        tools = self._tools
        while self._waiting and self.free and not self._parts.stop.is_set():
            one = self._waiting.popleft()
            if one.held.gone.is_set() or one.held.unsure.is_set():
                tools.hands.let_go(one.held)  # it waited for longer than its lease: somebody else may have it
                continue
            attempt = Attempt(one.held, one.stored, tools.store, tools.source, tools.executor, tools.rules)
            task = asyncio.create_task(attempt.run(), name=f"attempt: {attempt.key}")
            self._running[task] = attempt
            task.add_done_callback(partial(self._ended, started_mono=self._parts.clock.mono()))

    def _ended(self, task: asyncio.Task[Ended], started_mono: float) -> None:
        attempt = self._running.pop(task, None)
        if attempt is None or task.cancelled():
            return
        error = task.exception()
        if error is not None:
            # A bug of ours: the lease runs out, and the mail is tried again elsewhere.
            log.error("attempt_crashed", key=attempt.key, exc_info=error)
            self._tools.hands.let_go(attempt.held)
        else:
            self._note(attempt, self._parts.clock.mono() - started_mono)
            self._tools.writer.add(attempt.held, task.result(), attempt.key)
        self._start()
        self._on_free(attempt.pause_seconds)

    def _note(self, attempt: Attempt, seconds: float) -> None:
        self.average.add(seconds)
        self._parts.metrics.handler_duration_seconds.observe(seconds)
        if attempt.left_behind is not None:
            until_mono = self._parts.clock.mono() + self._tools.rules.timeout_seconds
            self._left_behind[attempt.held.claim.message_pk] = LeftBehind(attempt.left_behind, until_mono)
