"""What becomes of a mail after one handler attempt: the whole policy, decided here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ops_mail.core.mail import MessageStatus

MAX_DELAY_SECONDS = 300.0
MAX_RETRY_AFTER_SECONDS = 3600.0
"""A server that asks for more patience than this is asked again anyway."""


class EndKind(StrEnum):
    """How an attempt ended, as far as this process can tell."""

    SUCCEEDED = "succeeded"
    DISCARDED = "discarded"  # the handler wants nothing to be done with this mail
    FAILED = "failed"  # an error that may pass
    PERMANENT = "permanent"  # an error that will not pass
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"  # this process stops, or gives up for a reason that is not the mail's
    LOST = "lost"  # the process died or its lease ran out: nobody knows what the handler did


class AttemptOutcome(StrEnum):
    """The column `outcome` of `ops_mail_attempt`, and the label of `ops_mail_handler_attempts_total`."""

    DONE = "done"
    SKIPPED = "skipped"
    RETRY = "retry"
    DEAD = "dead"
    TIMED_OUT = "timed_out"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is written: the attempt's outcome, the mail's next status and, for `retry`, how long it has to wait.

    `forgiven`: the attempt does not count towards the maximum. `crashed`: it may have taken its process down.
    """

    outcome: AttemptOutcome
    status: MessageStatus
    delay_seconds: float = 0.0
    forgiven: bool = False
    crashed: bool = False


def retry_delay_seconds(attempts: int) -> float:
    """The wait after the `attempts`-th (from 1) attempt that counted: 2, 4, 8 … at most 300 s."""
    return min(MAX_DELAY_SECONDS, 2.0 ** min(max(attempts, 1), 16))


def decide(kind: EndKind, attempts: int, max_attempts: int, retry_after_seconds: float | None = None) -> Verdict:
    """The verdict on an attempt. `attempts`: how many counted for this mail, this one included.

    `retry_after_seconds` is what the handler or its server asked for; it prolongs the wait, up to an hour.
    """
    if kind is EndKind.SUCCEEDED:
        return Verdict(AttemptOutcome.DONE, MessageStatus.DONE)
    if kind is EndKind.DISCARDED:
        return Verdict(AttemptOutcome.SKIPPED, MessageStatus.SKIPPED)
    if kind is EndKind.INTERRUPTED:
        # A deployment must not use a mail's attempts up; how long to wait is the caller's business.
        return Verdict(
            AttemptOutcome.ABANDONED, MessageStatus.RETRY, delay_seconds=retry_after_seconds or 0.0, forgiven=True
        )
    crashed = kind is EndKind.LOST
    outcome = AttemptOutcome.RETRY
    if kind is EndKind.TIMED_OUT:
        outcome = AttemptOutcome.TIMED_OUT
    elif crashed:
        outcome = AttemptOutcome.ABANDONED
    if kind is EndKind.PERMANENT or attempts >= max_attempts:
        outcome = AttemptOutcome.DEAD if outcome is AttemptOutcome.RETRY else outcome
        return Verdict(outcome, MessageStatus.DEAD, crashed=crashed)
    asked = min(MAX_RETRY_AFTER_SECONDS, retry_after_seconds or 0.0)
    return Verdict(outcome, MessageStatus.RETRY, max(retry_delay_seconds(attempts), asked), crashed=crashed)
