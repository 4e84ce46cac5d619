"""One attempt from its start to the end that is to be written down."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import structlog

from ops_mail.core.outcome import MAX_RETRY_AFTER_SECONDS, EndKind, decide
from ops_mail.errors import StoreError, StoreUnavailable
from ops_mail.handlers.answering import Answer
from ops_mail.handlers.content import ContentSource
from ops_mail.handlers.hands import Held
from ops_mail.handlers.jobs import Executor, Job
from ops_mail.handlers.mail import Mail, mail_for_handler
from ops_mail.store.attempts import Ended
from ops_mail.store.handling import HandlingStore
from ops_mail.store.stored_mail import StoredMail

log = structlog.get_logger("ops_mail.handlers")

_UNREAD_SECONDS = 5.0
_PATIENCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class AttemptRules:
    """`process_end_seconds`: within so many seconds after `stop_now` the process is gone, whatever still runs in it.

    `stop_patience_seconds`: how long a handler may take to react to `stop_now`.
    """

    timeout_seconds: float
    max_attempts: int
    process_end_seconds: float
    stop_patience_seconds: float


class Attempt:
    """`stop_now` ends it from outside. `run` never raises but for cancellation and bugs."""

    def __init__(
        self,
        held: Held,
        stored: StoredMail | None,
        store: HandlingStore,
        source: ContentSource,
        executor: Executor,
        rules: AttemptRules,
    ) -> None:
        self.held = held
        self.stop_now = asyncio.Event()
        self.key = str(held.claim.message_pk) if stored is None else stored.key
        self.left_behind: Job | None = None
        self.pause_seconds = 0.0
        self._stored = stored
        self._store = store
        self._source = source
        self._executor = executor
        self._rules = rules

    async def run(self) -> Ended:
        """The end, decided."""
        answer = await self._answer()
        if answer.pause_all and answer.retry_after_seconds is not None:
            self.pause_seconds = min(MAX_RETRY_AFTER_SECONDS, answer.retry_after_seconds)
        claim = self.held.claim
        verdict = decide(answer.kind, claim.attempts, self._rules.max_attempts, answer.retry_after_seconds)
        return Ended(claim, verdict, result=answer.result, error=answer.error, writes=answer.writes)

    async def _answer(self) -> Answer:
        try:
            mail = await self._mail()
        except StoreUnavailable as error:
            return Answer(
                EndKind.INTERRUPTED,
                error=f"the mail could not be read: {error}",
                retry_after_seconds=_UNREAD_SECONDS,
            )
        except StoreError as error:
            return Answer(EndKind.FAILED, error=f"the mail could not be read: {error}")
        job = self._executor.start(mail)
        reason = await self._wait(job)
        if reason is None:
            return job.future.result()
        return await self._end(job, reason)

    async def _mail(self) -> Mail:
        claim = self.held.claim
        stored = self._stored
        if stored is None:
            stored = (await self._store.load([claim.message_pk])).get(claim.message_pk)
            if stored is None:
                raise StoreError("its row is gone")
            self.key = stored.key
        self._stored = None  # a mail may be large; the handler holds it from here on
        return mail_for_handler(stored, claim.attempt_no, self._source)

    async def _wait(self, job: Job) -> str | None:
        """None when the handler has ended by itself, else why it has to end."""
        signals = [self.held.gone, self.stop_now]
        if self._executor.can_cancel:  # a thread would go on anyway, and its lease may turn out to be ours still
            signals.append(self.held.unsure)
        waits = [asyncio.ensure_future(signal.wait()) for signal in signals]
        everything: list[asyncio.Future[Any]] = [job.future, *waits]
        try:
            await asyncio.wait(everything, timeout=self._rules.timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)
        if job.future.done():
            return None
        if self.held.gone.is_set():
            return "its lease ran out and another process has taken the mail"
        if self.stop_now.is_set():
            return "the process is stopping"
        if self.held.unsure.is_set():
            return "its lease may have run out: the database could not be reached"
        return ""

    async def _end(self, job: Job, reason: str) -> Answer:
        stopping = self.stop_now.is_set()
        patience_seconds = self._rules.stop_patience_seconds if stopping else _PATIENCE_SECONDS
        ended = await self._executor.end(job, patience_seconds, last=stopping)
        if not ended:
            self.left_behind = job
            log.warning("handler_left_behind", key=self.key, hung=self._executor.hung, reason=reason or "timeout")
        if reason:
            # What goes on here is gone with the process; until then no other one should take the mail.
            wait = 0.0 if ended else self._rules.process_end_seconds
            return Answer(EndKind.INTERRUPTED, error=f"abandoned: {reason}", retry_after_seconds=wait)
        if job.innocent:
            return Answer(EndKind.INTERRUPTED, error="another handler blocked the event loop they share")
        if ended and job.future.result().kind not in (EndKind.INTERRUPTED, EndKind.FAILED):
            return job.future.result()  # it ended in the very last moment
        text = f"no answer within {self._rules.timeout_seconds:g} s (OPS_MAIL_HANDLER_TIMEOUT_SECONDS)"
        answer = Answer(EndKind.TIMED_OUT, error=text)
        return answer if ended else replace(answer, error=f"{text}; it could not be ended and still runs")
