"""The verdicts behind `/healthz` and `/readyz`: alive, stuck, ready, and why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ops_mail.core.states import State
from ops_mail.core.status import MailboxStatus

SLACK_SECONDS = 8.0
"""How long a task may be late with its next sign of life before the process counts as stuck."""


class Pulse:
    """One supervised task's promise of when it will next show life.

    The task says `expect(n)` before each wait of at most n seconds; no word by then plus `SLACK_SECONDS` = stuck.
    """

    __slots__ = ("_clock", "_due_mono", "doing", "name")

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self.name = name
        self.doing = "starting"
        self._clock = clock
        self._due_mono: float | None = clock()

    def expect(self, within_seconds: float, doing: str) -> None:
        """The next sign of life comes within this time."""
        self.doing = doing
        self._due_mono = self._clock() + within_seconds

    def renew(self, within_seconds: float) -> None:
        """A sign of life in the middle of what was promised: the time due may become later, never sooner."""
        if self._due_mono is not None:
            self._due_mono = max(self._due_mono, self._clock() + within_seconds)

    def rest(self) -> None:
        """This task has ended in order; nothing more is expected of it."""
        self._due_mono = None

    def overdue_seconds(self, now_mono: float) -> float:
        """Seconds past the promised time; 0 while in time."""
        return 0.0 if self._due_mono is None else max(0.0, now_mono - self._due_mono)


def stuck_reasons(pulses: Iterable[Pulse], now_mono: float, slack_seconds: float = SLACK_SECONDS) -> list[str]:
    """One line for each task that is past its promise: only this process's own faults, nothing remote (P10)."""
    return [
        f"{pulse.name} has shown no life for {late:.0f} s longer than it promised (doing: {pulse.doing})"
        for pulse in pulses
        if (late := pulse.overdue_seconds(now_mono)) > slack_seconds
    ]


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a mailbox does its work, or stands by for another instance that should; `reason` is for people."""

    ready: bool
    reason: str


def sync_limit_seconds(status: MailboxStatus) -> float:
    """The oldest that a sync may be: two IDLE windows and a command's time."""
    return 2 * status.idle_window_seconds + status.command_timeout_seconds


def mailbox_readiness(status: MailboxStatus, now_mono: float) -> Readiness:
    """A standby that sees the guard held elsewhere is ready; a leader is ready while its last sync is fresh."""
    limit = sync_limit_seconds(status)
    if status.state is State.STANDBY:
        return _standby_readiness(status, now_mono)
    if status.state in (State.DRAINING, State.STOPPED):
        return Readiness(ready=False, reason="stopping")
    if _fresh(status.last_sync_mono, now_mono, limit):
        return Readiness(ready=True, reason=status.last_error if status.failures and status.last_error else "")
    if status.state is State.SYNCING and _fresh(status.last_progress_mono, now_mono, limit):
        return Readiness(ready=True, reason=f"catching up, {status.backlog} to go")
    age = "never synced" if status.last_sync_mono is None else f"last sync {now_mono - status.last_sync_mono:.0f} s ago"
    return Readiness(ready=False, reason=f"{age}: {status.last_error}" if status.last_error else age)


def _standby_readiness(status: MailboxStatus, now_mono: float) -> Readiness:
    if _fresh(status.standby_seen_mono, now_mono, 30.0):
        return Readiness(ready=True, reason=f"standing by for {status.holder or 'another instance'}")
    return Readiness(ready=False, reason=status.last_error or "the guard has not been seen yet")


def _fresh(at_mono: float | None, now_mono: float, limit_seconds: float) -> bool:
    return at_mono is not None and now_mono - at_mono <= limit_seconds
