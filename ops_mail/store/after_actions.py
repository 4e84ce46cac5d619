"""Which landed mails still wait for their after-action on the server (IMAP_AFTER_LANDING).

`after_action_at` NULL = it is due. Rows that landed while nothing was configured are born with it set: switching
`delete` on later must not reach back to mails that landed under `keep`.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.ids import FolderKey, Uid, UidValidity
from ops_mail.core.mail import MessageStatus
from ops_mail.store.columns import db_now
from ops_mail.store.schema import message


def _numbered(key: FolderKey, uid_validity: UidValidity) -> tuple[sa.ColumnElement[bool], ...]:
    return (message.c.mailbox == key.mailbox, message.c.folder == key.folder, message.c.uid_validity == uid_validity)


async def due_actions(
    connection: AsyncConnection, key: FolderKey, uid_validity: UidValidity, *, complete_only: bool, limit: int
) -> list[Uid]:
    """UIDs whose action is due, the oldest first. `complete_only`: just mails whose every byte is in the store."""
    find = (
        sa.select(message.c.uid)
        .where(message.c.after_action_at.is_(None), *_numbered(key, uid_validity))
        .order_by(message.c.id)
        .limit(limit)
    )
    if complete_only:
        find = find.where(message.c.raw_sha256.is_not(None), message.c.status != MessageStatus.OVERSIZE.value)
    return [Uid(uid) for uid in (await connection.execute(find)).scalars()]


async def mark_acted(
    connection: AsyncConnection, key: FolderKey, uid_validity: UidValidity, uids: Sequence[Uid]
) -> None:
    """The action of these mails has been carried out."""
    mark = sa.update(message).where(*_numbered(key, uid_validity), message.c.uid.in_(uids))
    await connection.execute(mark.values(after_action_at=db_now()))
