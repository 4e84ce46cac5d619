"""Removing what is no longer needed: contents of old handled mails, and blobs that nothing refers to any more.

The row stays as the proof of receipt: key, times, size, hash, sender and subject. A mail that was never handled, or is
dead, quarantined or oversize, keeps everything for as long as it is so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.audit_action import AuditAction
from ops_mail.core.mail import MessageStatus
from ops_mail.store.audit import add_audit
from ops_mail.store.blob_removal import Delete, remove_unused
from ops_mail.store.columns import db_now
from ops_mail.store.database import Database
from ops_mail.store.schema import attachment, attempt, message

FINISHED = (MessageStatus.DONE, MessageStatus.SKIPPED)
_BATCH = 100
_DAY_SECONDS = 86_400.0
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Removed:
    """What one run has removed."""

    mails: int = 0
    blobs: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """How far the walk along `landed_at` has come; the same rows are not looked at twice in one run."""

    landed_at: datetime | None = None
    id: int = 0


async def remove_old_contents(
    database: Database, days: int, stop: asyncio.Event, delete: Delete | None = None, batch: int = _BATCH
) -> Removed:
    """Removes the contents of all mails finished for more than `days` days. Ends early, in order, on a stop.

    In small transactions with pauses, so that landing and handling hardly notice. One audit row for each batch.
    """
    place, mails, freed = _Place(), 0, 0
    while not stop.is_set():
        place, rows, hashes = await database.writing(
            "removing old contents", partial(_remove_batch, place=place, days=days, batch=batch)
        )
        mails += rows
        for sha256 in hashes:
            freed += await remove_unused(database, sha256, delete)
        if place.landed_at is None:
            break
        await asyncio.sleep(_PAUSE_SECONDS)
    return Removed(mails, freed)


async def _remove_batch(
    connection: AsyncConnection, place: _Place, days: int, batch: int
) -> tuple[_Place, int, Sequence[str]]:
    """The next place (without a time at the end of the walk), how many mails, and which blobs may be unused now."""
    old = db_now(-days * _DAY_SECONDS)
    walk = (
        sa.select(message.c.id, message.c.landed_at, message.c.status, message.c.content_removed_at)
        .where(message.c.landed_at < old)
        .order_by(message.c.landed_at, message.c.id)
        .limit(batch)
    )
    if place.landed_at is not None:
        later = message.c.landed_at > place.landed_at
        walk = walk.where(sa.or_(later, sa.and_(message.c.landed_at == place.landed_at, message.c.id > place.id)))
    seen = (await connection.execute(walk)).all()
    end = _Place(seen[-1].landed_at, seen[-1].id) if len(seen) == batch else _Place()
    statuses = {status.value for status in FINISHED}
    wanted = [row.id for row in seen if row.content_removed_at is None and row.status in statuses]
    if not wanted:
        return end, 0, ()
    # Looked at again under a lock: an operator may have sent one back to its handler meanwhile.
    still = sa.select(message.c.id, message.c.raw_sha256).where(
        message.c.id.in_(wanted), message.c.status.in_(statuses), _finished_at() < old
    )
    rows = (await connection.execute(still.order_by(message.c.id).with_for_update())).all()
    ids = [row.id for row in rows]
    if not ids:
        return end, 0, ()
    files = sa.select(attachment.c.sha256).where(attachment.c.message_pk.in_(ids))
    hashes = {row.raw_sha256 for row in rows if row.raw_sha256} | set((await connection.execute(files)).scalars())
    await connection.execute(sa.delete(attachment).where(attachment.c.message_pk.in_(ids)))
    await connection.execute(
        sa.update(attempt).where(attempt.c.message_pk.in_(ids)).values(result=None)
    )  # what handlers have read out of a mail is content too
    await connection.execute(
        sa.update(message)
        .where(message.c.id.in_(ids))
        .values(text_body=None, html_body=None, headers=None, content_removed_at=db_now())
    )
    detail = {"mails": len(ids), "first_id": min(ids), "last_id": max(ids), "days": days}
    await add_audit(connection, "system", AuditAction.CONTENT_REMOVED, None, None, detail)
    return end, len(ids), sorted(hashes)


def _finished_at() -> sa.ColumnElement[datetime]:
    """When a mail became what it is: by the attempt that did it, else (an operator's discard) by the row's last change.

    Not always by the row's last change: a reparse or new numbers on the server change the row of a mail long finished.
    """
    by_attempt = sa.select(sa.func.max(attempt.c.finished_at)).where(
        attempt.c.message_pk == message.c.id, attempt.c.outcome == message.c.status
    )
    return sa.func.coalesce(by_attempt.scalar_subquery(), message.c.updated_at)
