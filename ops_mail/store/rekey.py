"""Finding mails of an older numbering again: same content, so the same row under its new key."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.ids import FolderKey, Uid, UidValidity
from ops_mail.core.mail import PreparedMail
from ops_mail.core.textfit import fit_time
from ops_mail.store.audit import count_rekeyed
from ops_mail.store.schema import message

Sameness = tuple[datetime | None, int, str | None]
"""(received_at, size_bytes, raw_sha256): two rows alike in these are one mail, or twins that nobody can tell apart.
Without a hash (the server could not give the bytes out) the other two have to do."""


async def find_old_rows(
    connection: AsyncConnection, key: FolderKey, uid_validity: UidValidity, mails: Sequence[PreparedMail]
) -> dict[Uid, int]:
    """For each UID of `mails` that has a row under another numbering, that row's id; no row is given twice.

    Twins are paired in UID order, so that each keeps its own row when the server kept their order.
    """
    if not mails or not await _has_old_rows(connection, key, uid_validity):
        return {}
    hashes = sorted({mail.raw_sha256 for mail in mails if mail.raw_sha256 is not None})
    alike: sa.ColumnElement[bool] = message.c.raw_sha256.in_(hashes)
    if any(mail.raw_sha256 is None for mail in mails):
        alike = sa.or_(alike, message.c.raw_sha256.is_(None))
    select = (
        sa.select(message.c.id, message.c.received_at, message.c.size_bytes, message.c.raw_sha256)
        .where(*_of_folder(key), message.c.uid_validity != uid_validity, alike)
        .order_by(message.c.uid_validity, message.c.uid)
    )
    waiting: dict[Sameness, deque[int]] = defaultdict(deque)
    for row in await connection.execute(select):
        waiting[(row.received_at, row.size_bytes, row.raw_sha256)].append(row.id)
    pairs: dict[Uid, int] = {}
    for mail in mails:
        if queue := waiting.get(_sameness(mail)):
            pairs[mail.listed.uid] = queue.popleft()
    return pairs


async def give_new_keys(
    connection: AsyncConnection, key: FolderKey, uid_validity: UidValidity, pairs: dict[Uid, int], now: datetime
) -> None:
    """Moves the rows to their new keys and counts them in the audit row of this numbering."""
    if not pairs:
        return
    change = (
        sa.update(message)
        .where(message.c.id == sa.bindparam("row_id"))
        .values(uid_validity=uid_validity, uid=sa.bindparam("new_uid"), updated_at=now)
    )
    await connection.execute(change, [{"row_id": row_id, "new_uid": uid} for uid, row_id in pairs.items()])
    await count_rekeyed(connection, key, uid_validity, len(pairs))


async def _has_old_rows(connection: AsyncConnection, key: FolderKey, uid_validity: UidValidity) -> bool:
    # Two ranges of the unique key, each left at its first row: cheap enough to ask every time, and so never stale.
    for other in (message.c.uid_validity < uid_validity, message.c.uid_validity > uid_validity):
        probe = sa.select(message.c.id).where(*_of_folder(key), other).limit(1)
        if (await connection.execute(probe)).first() is not None:
            return True
    return False


def _of_folder(key: FolderKey) -> tuple[sa.ColumnElement[bool], ...]:
    return (message.c.mailbox == key.mailbox, message.c.folder == key.folder)


def _sameness(mail: PreparedMail) -> Sameness:
    return (fit_time(mail.listed.internal_date, "", []), mail.listed.size_bytes, mail.raw_sha256)
