"""Each mailbox as it is shown: from the memory of its listener, or from its row when another process runs it. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from ops_mail.core.counted import counted
from ops_mail.core.health import mailbox_readiness
from ops_mail.core.ids import FolderKey
from ops_mail.core.states import State
from ops_mail.core.status import MailboxStatus
from ops_mail.store.model import CursorState
from ops_mail.store.overview_model import FolderRow
from ops_mail.web.display import REASON_CHARS, clean
from ops_mail.web.probes import sync_age_seconds
from ops_mail.web.snapshot import LeaderView, Level, MailboxView
from ops_mail.web.trouble import Trouble, trouble_of

ORPHAN = "orphan"
"""The state shown for a folder that no living process holds."""

FORGOTTEN = timedelta(days=7)
"""A row that nobody has held for so long belongs to a mailbox that was given up."""

_ENDING = (State.DRAINING, State.STOPPED)


def own_mailbox(mailbox: MailboxStatus, row: FolderRow | None, now_boot: float) -> MailboxView:
    """A mailbox of this process. `row` adds what happened before this process started, or at the leader's."""
    verdict = mailbox_readiness(mailbox, now_boot)
    standing_by = mailbox.state is State.STANDBY
    trouble = trouble_of(None if standing_by else mailbox.last_failure, mailbox.last_error)
    level = _own_level(mailbox, verdict.ready)
    if trouble is None and level is Level.BAD:
        trouble = Trouble.SILENT
    cursor = row.cursor if row is not None else None
    waiting = mailbox.state in (State.IDLING, State.POLLING)
    return MailboxView(
        name=mailbox.key.mailbox,
        folder=mailbox.key.folder,
        here=True,
        level=level,
        state=mailbox.state.value,
        ready=verdict.ready,
        reason=verdict.reason,
        last_sync_age_seconds=sync_age_seconds(mailbox, now_boot),
        holder=mailbox.holder,
        held_here=mailbox.holder is not None and not standing_by,
        epoch=_epoch(mailbox, cursor),
        last_uid=max(mailbox.last_uid, cursor.last_uid if cursor is not None and standing_by else 0),
        backlog=None if standing_by else mailbox.backlog,
        reconnects=mailbox.reconnects,
        failures=mailbox.failures,
        last_error=clean(mailbox.last_error, REASON_CHARS) or None,
        trouble=trouble,
        idle_trusted=mailbox.idle_trusted,
        state_since=mailbox.state_since,
        next_wait_over_at=mailbox.next_wait_over_at if waiting else None,
        next_retry_at=mailbox.next_retry_at if mailbox.state is State.BACKOFF else None,
        last_push_at=_later(mailbox.last_push_at, cursor.last_push_at if cursor else None),
        last_sync_at=_later(mailbox.last_sync_at, cursor.last_sync_at if cursor else None),
        last_landed_at=_later(mailbox.last_landed_at, row.last_landed_at if row else None),
        leader=_leader(cursor) if standing_by and cursor is not None and cursor.lease_live else None,
        source=mailbox.source,
    )


def _own_level(mailbox: MailboxStatus, ready: bool) -> Level:
    if mailbox.state in _ENDING:
        return Level.OFF
    if not ready:
        untried = mailbox.last_sync_mono is None and mailbox.standby_seen_mono is None
        return Level.BUSY if untried and not mailbox.failures and mailbox.last_error is None else Level.BAD
    if mailbox.state is State.STANDBY:
        return Level.STANDBY
    return Level.WARN if mailbox.failures else Level.OK


def _epoch(mailbox: MailboxStatus, cursor: CursorState | None) -> int | None:
    if mailbox.state is State.STANDBY and cursor is not None:
        return cursor.epoch
    return mailbox.epoch


def _leader(cursor: CursorState) -> LeaderView:
    return LeaderView(
        state=cursor.state,
        failures=cursor.failures,
        last_error=clean(cursor.last_error, REASON_CHARS) or None,
        next_retry_at=cursor.next_retry_at,
    )


def foreign_mailbox(row: FolderRow, now: datetime, sync_limit_seconds: float) -> MailboxView:
    """A mailbox that this process does not run. `now` is the database's time."""
    cursor = row.cursor
    held = cursor.lease_live and cursor.holder is not None
    age = None if cursor.last_sync_at is None else max(0.0, (now - cursor.last_sync_at).total_seconds())
    level, reason = _foreign_level(cursor, held, age, now, sync_limit_seconds)
    trouble = None
    if level in (Level.BAD, Level.WARN):
        trouble = trouble_of(None, cursor.last_error) or Trouble.SILENT if held else Trouble.ORPHAN
    return MailboxView(
        name=cursor.key.mailbox,
        folder=cursor.key.folder,
        here=False,
        level=level,
        state=cursor.state if held else ORPHAN,
        ready=level is Level.OK,
        reason=reason,
        last_sync_age_seconds=None if age is None else round(age, 1),
        holder=cursor.holder if held else None,
        held_here=False,
        epoch=cursor.epoch,
        last_uid=cursor.last_uid,
        backlog=None,
        reconnects=None,
        failures=cursor.failures,
        last_error=clean(cursor.last_error, REASON_CHARS) or None,
        trouble=trouble,
        idle_trusted=True,
        state_since=None,
        next_wait_over_at=None,
        next_retry_at=cursor.next_retry_at if held and cursor.state == State.BACKOFF else None,
        last_push_at=cursor.last_push_at,
        last_sync_at=cursor.last_sync_at,
        last_landed_at=row.last_landed_at,
    )


def _foreign_level(
    cursor: CursorState, held: bool, age: float | None, now: datetime, limit_seconds: float
) -> tuple[Level, str]:
    if not held:
        forgotten = now - cursor.updated_at > FORGOTTEN
        return (Level.OFF if forgotten else Level.BAD), "no living instance holds it"
    if cursor.state in _ENDING:
        return Level.OFF, "its instance is stopping"
    if age is None:
        return (Level.BAD if cursor.failures else Level.BUSY), "never synced"
    if age > limit_seconds:
        return Level.BAD, f"last sync {age:.0f} s ago"
    if cursor.failures:
        return Level.WARN, f"{counted(cursor.failures, 'failure')} in a row"
    return Level.OK, ""


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    known = [at for at in (one, other) if at is not None]
    return max(known, default=None)


def rows_by_key(rows: tuple[FolderRow, ...]) -> dict[FolderKey, FolderRow]:
    """The rows by folder."""
    return {row.cursor.key: row for row in rows}
