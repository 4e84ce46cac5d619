"""When the server numbers a folder anew: the cursor starts over, and old rows wait to be found again.

Rows are moved in small transactions, each fenced; the row with the highest UID goes last, together with the cursor.
Whoever starts again after a crash finds that row still in its place and so comes to the same conclusion.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.ids import FolderKey, UidValidity
from ops_mail.errors import StoreUnavailable
from ops_mail.store.audit import add_numbering
from ops_mail.store.columns import db_now
from ops_mail.store.cursors import fenced, held_by, place
from ops_mail.store.database import Database
from ops_mail.store.model import Lease
from ops_mail.store.schema import cursor, message

MOVE_ROWS = 500
RENUMBERED = -1
"""`start_uid` of a folder that was numbered anew: where IMAP_START=now began can only be told by date since then."""


async def begin_numbering(database: Database, lease: Lease, old: UidValidity | None, new: UidValidity) -> None:
    """The folder's UIDVALIDITY is `new` now. Repeating it is harmless. Raises Fenced.

    Should the server come back to a value it had before, the rows of that time are retired first: the same number may
    mean another mail by now, and their content is what finds them again.
    """

    async def present(connection: AsyncConnection) -> UidValidity | None:
        return (await place(connection, lease))[0]

    found = await database.writing("starting a new numbering", present)
    if found == new:
        return
    if found != old:
        raise StoreUnavailable(f"{lease.key}: the cursor stands at UIDVALIDITY {found}, not {old}")
    moved, retired = await _move_all(database, lease, new, keep_last=False)

    async def start(connection: AsyncConnection) -> None:
        count = sa.select(sa.func.count()).select_from(message).where(*_of_folder(lease.key))
        rows = (await connection.execute(count)).scalar_one()
        await _restart(connection, lease, new)
        reason = "uidvalidity_changed" if not moved else f"uidvalidity_returned, rows moved to {retired}"
        await add_numbering(connection, lease.key, reason, old, new, rows)

    await database.writing("starting a new numbering", start)


async def retire_numbering(database: Database, lease: Lease) -> int:
    """The server counts UIDs anew under the same UIDVALIDITY: the rows' old keys become free. Returns how many moved.

    Raises Fenced.
    """

    async def present(connection: AsyncConnection) -> UidValidity | None:
        return (await place(connection, lease))[0]

    current = await database.writing("retiring a numbering", present)
    if current is None:
        raise StoreUnavailable(f"{lease.key}: the cursor has no numbering yet")
    moved, retired = await _move_all(database, lease, current, keep_last=True)

    async def finish(connection: AsyncConnection) -> int:
        last = await connection.execute(
            sa.update(message)
            .where(*_of_folder(lease.key), message.c.uid_validity == current)
            .values(uid_validity=retired, updated_at=db_now())
        )
        await _restart(connection, lease, current)
        await add_numbering(connection, lease.key, "uids_went_backwards", retired, current, moved + last.rowcount)
        return int(last.rowcount)

    return moved + await database.writing("retiring a numbering", finish)


async def _move_all(
    database: Database, lease: Lease, uid_validity: UidValidity, *, keep_last: bool
) -> tuple[int, UidValidity]:
    """Moves the rows of `uid_validity` to a new negative one, all or all but the last. Returns (how many, where to)."""

    async def goal(connection: AsyncConnection) -> UidValidity:
        lowest = sa.select(sa.func.min(message.c.uid_validity)).where(*_of_folder(lease.key))
        return UidValidity(min(0, (await connection.execute(lowest)).scalar() or 0) - 1)

    retired = await database.writing("retiring a numbering", goal)

    async def move(connection: AsyncConnection) -> int:
        here = (*_of_folder(lease.key), message.c.uid_validity == uid_validity)
        select = sa.select(message.c.id).where(*here).order_by(message.c.uid).limit(MOVE_ROWS + 1)
        ids = list((await connection.execute(select)).scalars())
        ids = ids[:MOVE_ROWS] if len(ids) > MOVE_ROWS or not keep_last else ids[:-1]
        if ids:
            change = sa.update(message).where(message.c.id.in_(ids)).values(uid_validity=retired, updated_at=db_now())
            await connection.execute(change)
            touch = sa.update(cursor).where(held_by(lease)).values(updated_at=db_now())
            if (await connection.execute(touch)).rowcount == 0:
                raise fenced(lease)
        return len(ids)

    moved = 0
    while count := await database.writing("retiring a numbering", move):
        moved += count
    return moved, retired


async def _restart(connection: AsyncConnection, lease: Lease, uid_validity: UidValidity) -> None:
    restart = (
        sa.update(cursor)
        .where(held_by(lease))
        .values(uid_validity=uid_validity, last_uid=0, start_uid=RENUMBERED, updated_at=db_now())
    )
    if (await connection.execute(restart)).rowcount == 0:
        raise fenced(lease)


def _of_folder(key: FolderKey) -> tuple[sa.ColumnElement[bool], ...]:
    return (message.c.mailbox == key.mailbox, message.c.folder == key.folder)
