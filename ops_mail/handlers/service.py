"""The handlers of one process: claim, start, keep, write down, and hand everything back at the end."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from ops_mail.core.backoff import BackoffPolicy
from ops_mail.core.claim_size import Average, claim_size
from ops_mail.core.clock import Clock
from ops_mail.core.health import Pulse
from ops_mail.core.outcome import AttemptOutcome
from ops_mail.core.repeats import RepeatLimiter
from ops_mail.errors import StoreError
from ops_mail.handlers.attempt import Attempt, AttemptRules
from ops_mail.handlers.content import ContentSource
from ops_mail.handlers.gauges import HandlerGauges
from ops_mail.handlers.hands import Hands, Held
from ops_mail.handlers.jobs import Executor, Job
from ops_mail.handlers.loading import LoadedHandler
from ops_mail.handlers.writing import OutcomeWriter
from ops_mail.metrics import Metrics
from ops_mail.settings import HandlerOrder, HandlerSettings
from ops_mail.store import Store
from ops_mail.store.attempts import Ended
from ops_mail.store.claims import Claim, ClaimWish
from ops_mail.store.handling import HandlingStore
from ops_mail.store.stored_mail import StoredMail

log = structlog.get_logger("ops_mail.handlers")

_POLL_SECONDS = 1.0
_CALL_SECONDS = 60.0
_PRELOAD_BYTES = 64 * 1024
_UNWRITTEN_LIMIT = 200
_DATABASE_AWAY = BackoffPolicy(initial_seconds=0.5, max_seconds=10.0)
_SWITCH_SECONDS = 0.0005
_DRAIN_SHARE, _FLUSH_SHARE = 0.35, 0.1  # of the grace; of these the latter thrice at most


@dataclass(frozen=True, slots=True)
class HandlerParts:
    """What the service is given by the process. `random` yields 0 to 1."""

    store: Store
    metrics: Metrics
    clock: Clock
    random: Callable[[], float]
    stop: asyncio.Event
    schema_ready: asyncio.Event
    instance: str
    pulse: Pulse
    grace_seconds: float


@dataclass(slots=True)
class _Stock:
    """Claimed and not started."""

    held: Held
    stored: StoredMail | None


@dataclass(slots=True)
class _Look:
    """Whether it is worth asking the database for mails now."""

    now: asyncio.Event = field(default_factory=asyncio.Event)
    was_full: bool = False


class HandlerService:
    """`run` ends only with a stop, cancellation or a bug. Nothing in here waits for a handler on the main loop."""

    def __init__(self, handler: LoadedHandler, settings: HandlerSettings, parts: HandlerParts) -> None:
        self._handler = handler
        self._settings = settings
        self._parts = parts
        self._in_order = settings.order is HandlerOrder.UID
        self._store = HandlingStore(parts.store, in_order=self._in_order, max_attempts=settings.max_attempts)
        self._gauges = HandlerGauges(parts.metrics)
        self._rules = AttemptRules(
            timeout_seconds=settings.timeout_seconds,
            max_attempts=settings.max_attempts,
            process_end_seconds=parts.grace_seconds + 1.0,
            stop_patience_seconds=parts.grace_seconds * _FLUSH_SHARE / 2,
        )
        self._look = _Look()
        self._average = Average()
        self._stock: deque[_Stock] = deque()
        self._running: dict[asyncio.Task[Ended], Attempt] = {}
        self._left_behind: dict[int, Job] = {}
        self._paused_until_mono = 0.0
        self._turn = 0
        self._failures = 0
        self._repeats = RepeatLimiter()

    def wake(self) -> None:
        """A mail has landed in this process: look for it at once. Cheap; on the main loop."""
        self._look.now.set()

    async def close(self) -> None:
        """`run` closes what it opened; there is nothing else."""

    async def run(self) -> None:
        """See the class."""
        if not await self._schema_is_ready():
            return
        self._begin()
        dispatch = asyncio.create_task(self._dispatch(), name="handlers: dispatch")
        helpers: list[asyncio.Task[Any]] = [
            dispatch,
            asyncio.create_task(self._hands.keep(), name="handlers: leases"),
            asyncio.create_task(self._writer.run(), name="handlers: outcomes"),
            asyncio.create_task(self._recover(), name="handlers: recovery"),
            asyncio.create_task(self._parts.stop.wait(), name="handlers: stop"),
        ]
        try:
            done, _ = await asyncio.wait(helpers, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a bug in a helper: the supervisor tells it and starts the part again
            # Not cancelled: a claim that is committed just now would be in nobody's hands until its lease ran out.
            self._look.now.set()
            await asyncio.wait([dispatch], timeout=self._parts.grace_seconds * _FLUSH_SHARE)
            await self._hand_back()
        finally:
            self._parts.pulse.rest()
            await _end([*helpers, *self._running])
            self._running.clear()
            await self._executor.close(0.5)

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
        loop = asyncio.get_running_loop()
        self._executor: Executor = self._handler.executor()
        self._hands = Hands(self._store, self._parts.clock.mono)
        self._source = ContentSource(loop, self._store.content)
        self._writer = OutcomeWriter(
            self._store, self._hands, self._parts.metrics, self._settings.max_attempts, self._written
        )
        for outcome in AttemptOutcome:
            self._parts.metrics.handler_attempts.labels(outcome=outcome.value)
        self._stock.clear()
        if self._handler.in_threads:
            # A thread that computes gives the interpreter back after this long; the default of 5 ms, times the number
            # of such threads, is what each step of the main loop would have to wait.
            sys.setswitchinterval(_SWITCH_SECONDS)
        log.info("handlers_started", handler=self._handler.name, concurrency=self._settings.concurrency,
                 order=self._settings.order.value)  # fmt: skip

    # --- claiming and starting ------------------------------------------------------------------------------------

    async def _dispatch(self) -> None:
        self._look.now.set()
        while not self._parts.stop.is_set():
            self._show()
            if self._all_slots_hang():
                await asyncio.sleep(_POLL_SECONDS)  # no pulse: only a new process can help
                continue
            self._parts.pulse.expect(_CALL_SECONDS, "claiming mails")
            delay_seconds = await self._claim_some()
            self._parts.pulse.expect(delay_seconds, "waiting for mails")
            try:
                async with asyncio.timeout(delay_seconds):
                    await self._look.now.wait()
            except TimeoutError:
                pass

    async def _claim_some(self) -> float:
        """Claims what there is room for; how long to wait for news then."""
        poll_seconds = _POLL_SECONDS * (0.75 + self._parts.random() / 2)
        paused_seconds = self._paused_until_mono - self._parts.clock.mono()
        if paused_seconds > 0:
            self._look.now.clear()
            return min(paused_seconds, poll_seconds)
        wanted = self._wanted()
        if wanted == 0:
            self._look.now.clear()
            return poll_seconds
        self._look.now.clear()
        try:
            claimed = await self._claim(wanted)
        except StoreError as error:
            return self._claiming_failed(error)
        if self._failures:
            log.info("claiming_works_again", failures=self._failures)
        self._failures = 0
        self._repeats.forget()
        self._look.was_full = claimed >= wanted
        if self._look.was_full:
            self._look.now.set()
        return poll_seconds

    def _wanted(self) -> int:
        if self._writer.waiting > _UNWRITTEN_LIMIT:
            return 0
        free = max(0, self._slots() - len(self._running))
        if self._in_order:
            return max(0, free - len(self._stock))  # the one behind a mail may start only when its end is written
        return claim_size(free, self._slots(), len(self._stock), self._average.value)

    def _slots(self) -> int:
        """A hung handler's slot is replaced, but not without limit: each still holds what it holds."""
        spare = 2 * self._settings.concurrency
        return self._settings.concurrency - max(0, self._executor.hung - spare)

    def _all_slots_hang(self) -> bool:
        if self._slots() > 0:
            return False
        self._parts.pulse.doing = f"{self._executor.hung} handlers hang and cannot be ended"
        return True

    async def _claim(self, wanted: int) -> int:
        if not self._look.was_full and not await self._store.anything_due():
            return 0
        self._turn += 1
        wish = ClaimWish(
            lease_id="",
            limit=wanted,
            handler=self._handler.name,
            instance=self._parts.instance,
            suspect=not self._hands.suspect,
            retries_first=self._turn % 2 == 0,
            exclude=self._hands.ids() | self._still_running(),
        )
        asked_mono = self._parts.clock.mono()
        claims = await self._store.claim(wish)
        held = [self._hands.take(claim, asked_mono) for claim in claims]
        stored = await self._preload(claims)
        self._stock.extend(_Stock(one, stored.get(one.claim.message_pk)) for one in held)
        self._start_waiting()
        return len(claims)

    def _still_running(self) -> frozenset[int]:
        self._left_behind = {pk: job for pk, job in self._left_behind.items() if not job.future.done()}
        return frozenset(self._left_behind)

    async def _preload(self, claims: list[Claim]) -> dict[int, StoredMail]:
        """Small mails are read together; a large one when its turn comes, so that few are in memory at a time."""
        small = [claim.message_pk for claim in claims if claim.size_bytes <= _PRELOAD_BYTES]
        if not small:
            return {}
        try:
            return await self._store.load(small)
        except StoreError:
            return {}  # each attempt tries by itself and tells its own story

    def _claiming_failed(self, error: StoreError) -> float:
        self._failures += 1
        self._look.was_full = True  # do not ask first when it is back
        count = self._repeats.admit(str(error))
        if count:
            log.warning("claiming_failed", error=str(error), times=count)
        return _DATABASE_AWAY.delay_seconds(self._failures, self._parts.random())

    def _start_waiting(self) -> None:
        while self._stock and len(self._running) < self._slots() and not self._parts.stop.is_set():
            stock = self._stock.popleft()
            if stock.held.gone.is_set() or stock.held.unsure.is_set():
                self._hands.let_go(stock.held)  # it waited for longer than its lease: somebody else may have it
                continue
            attempt = Attempt(stock.held, stock.stored, self._store, self._source, self._executor, self._rules)
            task = asyncio.create_task(attempt.run(), name=f"attempt: {attempt.key}")
            self._running[task] = attempt
            started_mono = self._parts.clock.mono()
            task.add_done_callback(partial(self._ended, started_mono=started_mono))

    def _ended(self, task: asyncio.Task[Ended], started_mono: float) -> None:
        attempt = self._running.pop(task, None)
        if attempt is None or task.cancelled():
            return
        error = task.exception()
        if error is not None:
            # A bug of ours: the lease runs out, and the mail is tried again elsewhere.
            log.error("attempt_crashed", key=attempt.key, exc_info=error)
            self._hands.let_go(attempt.held)
            return
        seconds = self._parts.clock.mono() - started_mono
        self._average.add(seconds)
        if attempt.pause_seconds:
            self._pause(attempt.pause_seconds)
        self._parts.metrics.handler_duration_seconds.observe(seconds)
        if attempt.left_behind is not None:
            self._left_behind[attempt.held.claim.message_pk] = attempt.left_behind
        self._writer.add(attempt.held, task.result(), attempt.key)
        self._start_waiting()
        if self._look.was_full:
            self._look.now.set()

    def _pause(self, seconds: float) -> None:
        until_mono = self._parts.clock.mono() + seconds
        if until_mono > self._paused_until_mono:
            self._paused_until_mono = until_mono
            log.warning("handling_paused", seconds=round(seconds, 1), reason="a handler's remote side asked for it")

    def _written(self, suspect: bool) -> None:
        if self._in_order or suspect:  # then the next one may be taken only now
            self._look.was_full = True
            self._look.now.set()

    def _show(self) -> None:
        self._gauges.running.set(len(self._running))
        self._gauges.hung.set(self._executor.hung)
        self._gauges.unwritten.set(self._writer.waiting)

    # --- beside ---------------------------------------------------------------------------------------------------

    async def _recover(self) -> None:
        """Finds mails whose process died: at once, then about every third of a lease."""
        while True:
            try:
                verdicts = await self._store.recover_stale()
            except StoreError as error:
                log.debug("recovery_failed", error=str(error))
                verdicts = []
            for verdict in verdicts:
                self._parts.metrics.handler_attempts.labels(outcome=verdict.outcome.value).inc()
            if verdicts:
                log.warning("stale_mails_recovered", mails=len(verdicts))
            await asyncio.sleep(self._store.lease_seconds / 3 * (0.75 + self._parts.random() / 2))

    # --- the end --------------------------------------------------------------------------------------------------

    async def _hand_back(self) -> None:
        """A stop: what was not started goes back as it was, what runs gets a share of the grace, then goes back too."""
        self._parts.pulse.expect(self._parts.grace_seconds, "stopping")
        grace = self._parts.grace_seconds
        giving_back = asyncio.create_task(self._give_stock_back())
        if self._running:
            await asyncio.wait(set(self._running), timeout=grace * _DRAIN_SHARE)
        attempts = tuple(self._running.values())
        for attempt in attempts:
            attempt.stop_now.set()
        if attempts:
            log.warning("attempts_abandoned", mails=len(attempts), after_seconds=round(grace * _DRAIN_SHARE, 1))
            await asyncio.wait(set(self._running), timeout=grace * _FLUSH_SHARE)
        try:
            async with asyncio.timeout(grace * _FLUSH_SHARE):
                await giving_back
                await self._writer.idle()
        except TimeoutError:
            giving_back.cancel()
            log.warning("outcomes_lost", outcomes=self._writer.waiting, reason="the database did not answer in time")

    async def _give_stock_back(self) -> None:
        unstarted = [stock.held for stock in self._stock]
        self._stock.clear()
        if not unstarted:
            return
        try:
            await self._store.give_back([held.claim for held in unstarted])
        except StoreError as error:
            log.warning("mails_not_given_back", mails=len(unstarted), error=str(error))
        for held in unstarted:
            self._hands.let_go(held)


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
