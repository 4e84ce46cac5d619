"""After SELECT: agree with our tables on which mails the folder's numbers mean, before the first sync."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

import structlog

from ops_mail.core.ids import FolderKey, Uid, UidValidity
from ops_mail.core.mail import Listed
from ops_mail.core.numbering import Anchor, Found, Known, Numbering, anchor_uid, judge_numbering
from ops_mail.errors import Fenced
from ops_mail.imap import UNKNOWN_DATE, ImapSession, Refused, SelectedFolder
from ops_mail.listener.tools import ListenerOptions
from ops_mail.store import CursorState, Lease, Store
from ops_mail.store.model import Anchor as Row

log = structlog.get_logger("ops_mail.listener")

_SMALL_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Position:
    """Where the sync starts: mails with uid > last_uid and INTERNALDATE not before `earliest` are wanted.

    UIDs up to `start_uid` were in the folder before IMAP_START=now.
    """

    uid_validity: UidValidity
    start_uid: Uid
    last_uid: Uid
    earliest: datetime | None
    numbering: Numbering


async def reconcile(
    store: Store, session: ImapSession, lease: Lease, selected: SelectedFolder, options: ListenerOptions
) -> Position:
    """Compare numbering and put the cursor where this sync has to start. Raises ImapError, StoreError."""
    cursor = await store.read_cursor(lease.key)
    if cursor is None:
        raise Fenced(f"the cursor row of {lease.key} is gone")
    highest = await session.highest_uid() or Uid(0)
    known = Known(cursor.uid_validity, cursor.last_uid)
    found = Found(selected.uid_validity, highest, selected.uid_next)
    anchor = await _anchor(store, session, lease.key, known, found)
    numbering = judge_numbering(known, found, anchor)
    last_uid = await _settle(store, lease, numbering, cursor, found, options)
    start_uid = max(Uid(0), cursor.start_uid) if numbering is Numbering.SAME else Uid(0)
    if numbering is Numbering.FIRST:
        start_uid = last_uid
    renumbered = numbering in (Numbering.CHANGED, Numbering.RESTARTED) or cursor.renumbered
    begun_at = cursor.created_at if renumbered else None
    return Position(
        found.uid_validity,
        start_uid,
        last_uid,
        earliest_wanted(start_now=options.start_now, start_date=options.start_date, begun_at=begun_at),
        numbering,
    )


async def _anchor(store: Store, session: ImapSession, key: FolderKey, known: Known, found: Found) -> Anchor:
    uid = anchor_uid(known, found)
    if uid == 0 or known.uid_validity != found.uid_validity:
        return Anchor(None, None)
    ours = await store.anchor(key, found.uid_validity, uid)
    theirs = (await session.list_uids([uid])).get(uid)
    if ours is None or theirs is None or UNKNOWN_DATE in (ours.received_at, theirs.internal_date):
        return Anchor(None, None)
    if ours.received_at != theirs.internal_date and await _is_same_mail(session, ours, theirs):
        # Servers are known whose dates wander (made up when the mail has none, shifted by a new time zone). The very
        # same mail at the very same UID weighs more: to read all anew would land every mail a second time.
        log.warning("internal_date_wanders", uid=uid, before=str(ours.received_at), now=str(theirs.internal_date))
        return Anchor(None, None)
    return Anchor(ours.received_at, theirs.internal_date)


async def _is_same_mail(session: ImapSession, ours: Row, theirs: Listed) -> bool:
    """By size and content; for a large mail the size says enough. Raises ImapError when the session breaks."""
    if ours.size_bytes != theirs.size_bytes or theirs.size_bytes > _SMALL_BYTES:
        return ours.size_bytes == theirs.size_bytes
    try:
        content = (await session.fetch_small([theirs])).get(theirs.uid)
    except Refused:
        return False
    return content is not None and hashlib.sha256(content).hexdigest() == ours.raw_sha256


async def _settle(
    store: Store, lease: Lease, numbering: Numbering, cursor: CursorState, found: Found, options: ListenerOptions
) -> Uid:
    match numbering:
        case Numbering.FIRST:
            start = found.highest_uid if options.start_now else Uid(0)
            await store.start_cursor(lease, found.uid_validity, start, start)
            log.info("folder_first_read", uid_validity=found.uid_validity, start_uid=start)
            return start
        case Numbering.CHANGED:
            assert cursor.uid_validity is not None  # noqa: S101 - else the verdict is FIRST
            log.warning("uid_validity_changed", old=cursor.uid_validity, new=found.uid_validity)
            await store.begin_numbering(lease, cursor.uid_validity, found.uid_validity)
            return Uid(0)
        case Numbering.RESTARTED:
            rows = await store.retire_numbering(lease)
            log.warning("uids_went_backwards", last_uid=cursor.last_uid, highest_uid=found.highest_uid, rows=rows)
            return Uid(0)
        case Numbering.SAME:
            return cursor.last_uid


def earliest_wanted(*, start_now: bool, start_date: datetime | None, begun_at: datetime | None) -> datetime | None:
    """The INTERNALDATE that a wanted mail has at least.

    With IMAP_START=now the start is a UID; once the folder is numbered anew it can only be told by `begun_at`, the
    time of the first reading (None: not numbered anew).
    """
    return begun_at if start_now else start_date
