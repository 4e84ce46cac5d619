"""The landing transaction: mails, their content, attachments and the cursor, all or nothing, and fenced."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.ids import FolderKey, Uid, UidValidity
from ops_mail.core.mail import MessageStatus, PreparedMail
from ops_mail.errors import StoreUnavailable
from ops_mail.store.blobs import BlobStore
from ops_mail.store.bodies import write_bodies
from ops_mail.store.columns import db_now
from ops_mail.store.cursors import fenced, held_by, place
from ops_mail.store.inserts import insert_many
from ops_mail.store.model import LandingBatch, LandingResult, Lease
from ops_mail.store.rekey import find_old_rows, give_new_keys
from ops_mail.store.rows import MailRow, RowLimits, attachment_rows, mail_row
from ops_mail.store.schema import attachment, cursor, message

_ROW_BYTES = 1024  # what a row's short columns amount to


def check_batch(batch: LandingBatch) -> None:
    """Raises ValueError for a batch that breaks LandingBatch's own promise: a bug of the caller."""
    uids = [mail.listed.uid for mail in batch.mails]
    if uids != sorted(set(uids)) or (uids and batch.advance_to < uids[-1]):
        raise ValueError("a batch must ascend and advance the cursor to its last UID at least")


async def land(
    connection: AsyncConnection, blobs: BlobStore, limits: RowLimits, lease: Lease, batch: LandingBatch
) -> LandingResult:
    """Everything of one landing but BEGIN and COMMIT. Raises Fenced; the caller rolls back then.

    The cursor's row is locked last: until then a heartbeat gets through however long the content takes to write.
    """
    uid_validity, key = batch.uid_validity, lease.key
    present, _, now = await place(connection, lease)
    if present != uid_validity:
        raise StoreUnavailable(f"{key}: the cursor stands at UIDVALIDITY {present}, the mails are of {uid_validity}")
    known = await _known(connection, key, uid_validity, batch.mails)
    fresh = [mail for mail in batch.mails if mail.listed.uid not in known]
    old_rows = await find_old_rows(connection, key, uid_validity, fresh)
    new = [mail for mail in fresh if mail.listed.uid not in old_rows]
    if new:
        await blobs.put(connection, [blob for mail in new for blob in mail.blobs])
        await _insert(connection, key, batch, new, limits, now)
    completed: frozenset[Uid] = frozenset()
    if batch.completes:
        whole = [mail for mail in batch.mails if mail.listed.uid in known and mail.raw_sha256 is not None]
        completed = await _complete(connection, blobs, key, batch, whole, limits, now)
    await give_new_keys(connection, key, uid_validity, old_rows, now)
    await _advance(connection, lease, batch)
    new_uids = frozenset(mail.listed.uid for mail in new) | completed
    return LandingResult(
        landed=len(new_uids), rekeyed=len(old_rows), duplicates=len(known) - len(completed), new_uids=new_uids
    )


def incomplete() -> sa.ColumnElement[bool]:
    """A row that nobody has acted on and that lacks content which the server may still give."""
    unfetched = sa.and_(message.c.status == MessageStatus.QUARANTINED.value, message.c.raw_sha256.is_(None))
    return sa.or_(unfetched, message.c.status == MessageStatus.OVERSIZE.value)


async def _complete(
    connection: AsyncConnection,
    blobs: BlobStore,
    key: FolderKey,
    batch: LandingBatch,
    mails: Sequence[PreparedMail],
    limits: RowLimits,
    now: datetime,
) -> frozenset[Uid]:
    """Fills the rows of mails that the server did not give at first; which of them were filled now."""
    await blobs.put(connection, [blob for mail in mails for blob in mail.blobs])
    filled: dict[Uid, MailRow] = {}
    for mail in mails:
        row = mail_row(key, batch.uid_validity, mail, limits, now, action_due=batch.action_due)
        change = sa.update(message).where(
            message.c.mailbox == key.mailbox,
            message.c.folder == key.folder,
            message.c.uid_validity == batch.uid_validity,
            message.c.uid == mail.listed.uid,
            incomplete(),
        )
        if (await connection.execute(change.values(**row.values))).rowcount:
            filled[mail.listed.uid] = row
    done = [mail for mail in mails if mail.listed.uid in filled]
    await _insert_parts(connection, key, batch.uid_validity, done, list(filled.values()))
    return frozenset(filled)


async def _known(
    connection: AsyncConnection, key: FolderKey, uid_validity: UidValidity, mails: Sequence[PreparedMail]
) -> set[Uid]:
    if not mails:
        return set()
    select = sa.select(message.c.uid).where(
        message.c.mailbox == key.mailbox,
        message.c.folder == key.folder,
        message.c.uid_validity == uid_validity,
        message.c.uid.in_([mail.listed.uid for mail in mails]),
    )
    return set((await connection.execute(select)).scalars())


async def _insert(
    connection: AsyncConnection,
    key: FolderKey,
    batch: LandingBatch,
    mails: Sequence[PreparedMail],
    limits: RowLimits,
    now: datetime,
) -> None:
    uid_validity, action_due = batch.uid_validity, batch.action_due
    rows = [mail_row(key, uid_validity, mail, limits, now, action_due=action_due) for mail in mails]
    await insert_many(connection, message, [row.values for row in rows], _size)
    await _insert_parts(connection, key, uid_validity, mails, rows)


async def _insert_parts(
    connection: AsyncConnection,
    key: FolderKey,
    uid_validity: UidValidity,
    mails: Sequence[PreparedMail],
    rows: Sequence[MailRow],
) -> None:
    """What does not fit into the rows themselves: attachments, and the rest of long bodies."""
    tails = {row.values["uid"]: row for row in rows if row.rest}
    attached = {mail.listed.uid: mail.attachments for mail in mails if mail.attachments}
    if not tails and not attached:
        return
    ids = await _row_ids(connection, key, uid_validity, sorted(tails.keys() | attached.keys()))
    for uid, row in tails.items():
        await write_bodies(connection, ids[uid], row.rest)
    children = [child for uid, files in attached.items() for child in attachment_rows(ids[uid], files)]
    await insert_many(connection, attachment, children, lambda _: _ROW_BYTES)


async def _row_ids(
    connection: AsyncConnection, key: FolderKey, uid_validity: UidValidity, uids: list[Uid]
) -> dict[Uid, int]:
    select = sa.select(message.c.uid, message.c.id).where(
        message.c.mailbox == key.mailbox,
        message.c.folder == key.folder,
        message.c.uid_validity == uid_validity,
        message.c.uid.in_(uids),
    )
    return {row.uid: row.id for row in await connection.execute(select)}


async def _advance(connection: AsyncConnection, lease: Lease, batch: LandingBatch) -> None:
    """The fenced update: no row matched means that another instance took over since the beginning."""
    further = sa.case((cursor.c.last_uid < batch.advance_to, batch.advance_to), else_=cursor.c.last_uid)
    advance = (
        sa.update(cursor)
        .where(held_by(lease), cursor.c.uid_validity == batch.uid_validity)
        .values(last_uid=further, last_sync_at=batch.synced_at, updated_at=db_now())
    )
    if (await connection.execute(advance)).rowcount == 0:
        raise fenced(lease)


def _size(values: dict[str, Any]) -> int:
    bodies = sum(len(values[column] or "") for column in ("text_body", "html_body", "subject", "auth_results"))
    return _ROW_BYTES + bodies + sum(len(name) + len(value) for name, value in values["headers"])
