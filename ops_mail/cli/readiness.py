"""Whether a mailbox is ready, judged by its row alone: what `status` can know from outside. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from ops_mail.core.counted import counted
from ops_mail.core.ids import FolderKey
from ops_mail.core.states import State
from ops_mail.store import CursorState

_ENDING = (State.DRAINING, State.STOPPED)
_OPENING = (State.STANDBY, State.CONNECTING, State.SELECTING)


@dataclass(frozen=True, slots=True)
class Judged:
    """One mailbox with its verdict. `expected` is False for a row that these settings do not speak of.

    `reason`: why it is not ready, or what went wrong although it is.
    """

    key: FolderKey
    cursor: CursorState | None
    sync_age_seconds: float | None
    expected: bool
    ready: bool
    reason: str


def judge_all(
    cursors: Sequence[CursorState], expected: Collection[FolderKey], now: datetime, limit_seconds: float
) -> list[Judged]:
    """The mailboxes of the settings, then the other rows. With none in the settings every row is expected."""
    rows = {cursor.key: cursor for cursor in cursors}
    keys = [*expected, *(key for key in rows if key not in expected)]
    return [_judge(key, rows.get(key), not expected or key in expected, now, limit_seconds) for key in keys]


def _judge(key: FolderKey, cursor: CursorState | None, expected: bool, now: datetime, limit_seconds: float) -> Judged:
    age = None
    if cursor is not None and cursor.last_sync_at is not None:
        age = max(0.0, (now - cursor.last_sync_at).total_seconds())
    reason = _why_not(cursor, age, limit_seconds)
    return Judged(key, cursor, age, expected, ready=not reason, reason=reason or _trouble(cursor))


def _why_not(cursor: CursorState | None, age: float | None, limit_seconds: float) -> str:
    if cursor is None:
        return "no instance has ever listened to it"
    if cursor.holder is None or not cursor.lease_live:
        return "no living instance holds it"
    error = _error(cursor)
    if cursor.state == State.BACKOFF:
        return f"in backoff after {counted(cursor.failures, 'failure')}{error}"
    if cursor.state in _OPENING:
        # However fresh the last sync is, it was made in another session: nobody knows whether this one comes about.
        if cursor.failures:
            return f"connecting again after {counted(cursor.failures, 'failure')}{error}"
        return "its instance is connecting"
    if cursor.state in _ENDING:
        return "its instance is stopping"
    if age is None:
        return f"never synced{error}"
    if age > limit_seconds:
        return f"last sync {age:.0f} s ago{error}"
    return ""


def _trouble(cursor: CursorState | None) -> str:
    """What a mailbox that is ready has just got over; it is over with the next sync that ends."""
    if cursor is None or not cursor.failures:
        return ""
    return f"in sync again after {counted(cursor.failures, 'failure')}{_error(cursor)}"


def _error(cursor: CursorState) -> str:
    return f": {cursor.last_error}" if cursor.last_error else ""
