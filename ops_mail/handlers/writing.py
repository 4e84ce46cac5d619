"""Writing ends down: many in one transaction when many come, again and again while the database is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from ops_mail.core.mail import MessageStatus
from ops_mail.core.outcome import EndKind, decide
from ops_mail.core.repeats import RepeatLimiter
from ops_mail.errors import StoreError, StoreRefused, StoreUnavailable
from ops_mail.handlers.hands import Hands, Held
from ops_mail.metrics import Metrics
from ops_mail.settings import redact
from ops_mail.store.attempts import Ended
from ops_mail.store.handling import HandlingStore, Unwritten

log = structlog.get_logger("ops_mail.handlers")

_GROUP = 100
_STRIKES = 3
_PAUSES = (0.2, 1.0, 5.0)


@dataclass(frozen=True, slots=True)
class Written:
    """For whoever wants to know that an end is in the tables."""

    held: Held
    end: Ended
    key: str
    strikes: int = 0
    """How often the database did not take this end although it took others."""


class OutcomeWriter:
    """`add` never waits. A claim stays in hand until its end is written, or is known to be nobody's business here."""

    def __init__(
        self,
        store: HandlingStore,
        hands: Hands,
        metrics: Metrics,
        max_attempts: int,
        on_written: Callable[[bool], None],
    ) -> None:
        self._store = store
        self._hands = hands
        self._metrics = metrics
        self._max_attempts = max_attempts
        self._on_written = on_written
        self._queue: list[Written] = []
        self._news = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._repeats = RepeatLimiter()
        self._unkept = RepeatLimiter()

    async def idle(self) -> None:
        """Waits until all is written."""
        await self._empty.wait()

    @property
    def waiting(self) -> int:
        """Ends that are not in the tables yet."""
        return len(self._queue)

    def add(self, held: Held, end: Ended, key: str) -> None:
        """Write this down soon."""
        self._queue.append(Written(held, end, key))
        self._empty.clear()
        self._news.set()

    async def run(self) -> None:
        """For ever."""
        while True:
            await self._news.wait()
            self._news.clear()
            self._empty.clear()
            failures = 0
            while self._queue:
                if await self.write_some():
                    failures = 0
                    continue
                await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
                failures += 1
            self._empty.set()

    async def write_some(self) -> bool:
        """One round; False when the database could not be reached."""
        group = self._next_group()
        try:
            unwritten = await self._store.write([one.end for one in group])
        except StoreError as error:
            unwritten = [Unwritten(one.end, error) for one in group]
        failed = {id(one.end): one for one in unwritten}
        taken = {id(one) for one in group}
        self._queue = [one for one in self._queue if id(one) not in taken]
        away = False
        for one in group:
            problem = failed.get(id(one.end))
            if problem is None:
                self._settle(one)
            elif problem.error is None:
                self._refused(one)
            elif problem.alone:
                self._strike(one, problem.error)
            elif isinstance(problem.error, StoreUnavailable):
                self._keep(one, problem.error)
                away = True
            else:
                self._write_less(one, problem.error)
        self._on_written(any(one.held.claim.suspect for one in group))
        return not away or any(problem.alone for problem in unwritten)

    def _settle(self, one: Written) -> None:
        self._hands.let_go(one.held)
        self._repeats.forget()
        verdict = one.end.verdict
        self._metrics.handler_attempts.labels(outcome=verdict.outcome.value).inc()
        tell = log.debug if verdict.outcome in ("done", "skipped") else log.warning
        tell(
            "mail_handled",
            key=one.key,
            attempt=one.end.claim.attempt_no,
            outcome=verdict.outcome.value,
            status=verdict.status.value,
            error=_kind_of(one.end.error),
        )
        if verdict.status is MessageStatus.DONE and one.end.error is not None:
            self._tell_unkept(one.key, one.end)

    def _tell_unkept(self, key: str, end: Ended) -> None:
        """The mail is done, but its result is not recorded. At growing intervals: a handler does so with every mail."""
        kind = _kind_of(end.error)
        count = self._unkept.admit(str(kind))
        if count:
            log.warning("result_not_kept", key=key, attempt=end.claim.attempt_no, error=kind, times=count)

    def _refused(self, one: Written) -> None:
        """Another process has taken the mail meanwhile and has closed this attempt as abandoned."""
        self._hands.let_go(one.held)
        log.warning("late_outcome_refused", key=one.key, attempt=one.end.claim.attempt_no,
                    outcome=one.end.verdict.outcome.value)  # fmt: skip

    def _next_group(self) -> list[Written]:
        """An end that had trouble of its own comes after all others, and by itself: it may take all its time again."""
        fresh = [one for one in self._queue if not one.strikes]
        return fresh[:_GROUP] or self._queue[:1]

    def _keep(self, one: Written, error: StoreError) -> None:
        count = self._repeats.admit_error(str(error))
        if count:
            log.warning("outcome_not_written", key=one.key, error=str(error), times=count)
        self._queue.append(one)

    def _strike(self, one: Written, error: StoreError) -> None:
        """What the handler wants to write is too slow, too large, or waits for a lock that nobody lets go of."""
        struck = replace(one, strikes=one.strikes + 1)
        if one.end.writes and struck.strikes >= _STRIKES:
            text = f"{_STRIKES} times the database did not take it, although it took others: too slow, too large, or"
            self._fail(struck, StoreRefused(f"{text} in wait for a lock ({error})"))
        else:
            self._keep(struck, error)

    def _write_less(self, one: Written, error: StoreError) -> None:
        """The database refuses something in it for good: first the result is given up, then what it wants to write."""
        if one.end.result is not None and isinstance(error, StoreRefused):
            # What the handler did is done. A number with hundreds of digits, for one, is JSON, but not to every server.
            note = redact(f"the result was not kept, the database refused it or what was written with it: {error}")
            end = replace(one.end, result=None, error=one.end.error or note)
            self._queue.append(replace(one, end=end))
        elif one.end.writes:
            self._fail(one, error)
        else:
            log.error("outcome_refused_by_database", key=one.key, error=str(error))
            self._hands.let_go(one.held)  # the lease runs out and somebody tries again

    def _fail(self, one: Written, error: StoreError) -> None:
        verdict = decide(EndKind.FAILED, one.end.claim.attempts, self._max_attempts)
        text = redact(f"{type(error).__name__}: what the handler wanted to write was refused: {error}")
        end = replace(one.end, verdict=verdict, result=None, writes=(), error=text)
        self._queue.append(replace(one, end=end))


def _kind_of(error: str | None) -> str | None:
    """The type of an error alone: its text may hold what stands in the mail."""
    return None if error is None else error.partition(":")[0][:80]
