"""The cursor of each folder: where landing stands, who may land (the epoch), and what `status` shows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.ids import Epoch, FolderKey, Uid, UidValidity
from ops_mail.core.textfit import fit
from ops_mail.errors import Fenced, StoreRefused, StoreUnavailable
from ops_mail.store.columns import db_now
from ops_mail.store.model import CursorReport, CursorState, Lease
from ops_mail.store.rows import ERROR_CHARS
from ops_mail.store.schema import cursor

_LIVE = sa.case((cursor.c.lease_until > db_now(), 1), else_=0).label("lease_live")


def fenced(lease: Lease) -> Fenced:
    """The error of a lease whose epoch is no longer the folder's."""
    return Fenced(f"{lease.key}: another instance has taken over (epoch {lease.epoch} is past)")


def held_by(lease: Lease) -> sa.ColumnElement[bool]:
    """The condition each write of a holder carries: this folder, at this epoch."""
    return sa.and_(cursor.c.id == lease.cursor_id, cursor.c.epoch == lease.epoch)


async def take_epoch(
    connection: AsyncConnection, key: FolderKey, holder: str, lease_seconds: float, *, only_if_free: bool
) -> Lease | None:
    """Makes `holder` the folder's holder at a new epoch; None if `only_if_free` and another's lease still runs."""
    row_id, before = await _ensure_row(connection, key)
    free = sa.or_(
        cursor.c.holder.is_(None),
        cursor.c.holder == holder,
        cursor.c.lease_until.is_(None),
        cursor.c.lease_until < db_now(),
    )
    take = (
        sa.update(cursor)
        .where(cursor.c.id == row_id, *([free] if only_if_free else []))
        .values(epoch=cursor.c.epoch + 1, holder=holder, lease_until=db_now(lease_seconds), updated_at=db_now())
    )
    if (await connection.execute(take)).rowcount == 0:
        return None
    epoch = (await connection.execute(sa.select(cursor.c.epoch).where(cursor.c.id == row_id))).scalar_one()
    return Lease(key, row_id, Epoch(epoch), holder, before)


async def _ensure_row(connection: AsyncConnection, key: FolderKey) -> tuple[int, str | None]:
    """The row's id and its present holder."""
    find = sa.select(cursor.c.id, cursor.c.mailbox, cursor.c.folder, cursor.c.holder).where(*_is(key))
    row = (await connection.execute(find)).one_or_none()
    if row is None:
        values = {"mailbox": key.mailbox, "folder": key.folder, "created_at": db_now(), "updated_at": db_now()}
        await connection.execute(sa.insert(cursor).values(**values))
        row = (await connection.execute(find)).one()
    if (row.mailbox, row.folder) != (key.mailbox, key.folder):
        # MySQL compares without trailing blanks: two folders that differ there alone would share their mails' keys.
        raise StoreRefused(f"{key}: the table has {row.mailbox}/{row.folder} already, alike but for blanks at the end")
    return int(row.id), row.holder


async def give_up(connection: AsyncConnection, lease: Lease) -> None:
    """Ends a lease at once, unless somebody else has taken the folder already."""
    leave = sa.update(cursor).where(held_by(lease)).values(holder=None, lease_until=db_now(), updated_at=db_now())
    await connection.execute(leave)


async def heartbeat(connection: AsyncConnection, lease: Lease, report: CursorReport, lease_seconds: float) -> None:
    """Prolongs the lease and writes the report. Raises Fenced."""
    values: dict[str, Any] = {
        "lease_until": db_now(lease_seconds),
        "state": report.state[:32],
        "failures": report.failures,
        "last_error": fit(report.last_error, "last_error", [], max_chars=ERROR_CHARS),
        "next_retry_at": report.next_retry_at,
        "updated_at": db_now(),
    }
    if report.last_push_at is not None:
        values["last_push_at"] = report.last_push_at
    if report.last_sync_at is not None:
        values["last_sync_at"] = report.last_sync_at
    if (await connection.execute(sa.update(cursor).where(held_by(lease)).values(**values))).rowcount == 0:
        raise fenced(lease)


async def read_cursor(connection: AsyncConnection, key: FolderKey) -> CursorState | None:
    """The folder's row, if an instance has ever held it."""
    row = (await connection.execute(sa.select(cursor, _LIVE).where(*_is(key)))).one_or_none()
    return None if row is None else _state(row)


async def list_cursors(connection: AsyncConnection) -> tuple[CursorState, ...]:
    """All rows by mailbox and folder."""
    rows = await connection.execute(sa.select(cursor, _LIVE).order_by(cursor.c.mailbox, cursor.c.folder))
    return tuple(_state(row) for row in rows)


async def place(connection: AsyncConnection, lease: Lease) -> tuple[UidValidity | None, Uid, datetime]:
    """(uid_validity, last_uid, the database's time) of a folder still held. Raises Fenced. Takes no lock."""
    find = sa.select(cursor.c.uid_validity, cursor.c.last_uid, db_now().label("now")).where(held_by(lease))
    row = (await connection.execute(find)).one_or_none()
    if row is None:
        raise fenced(lease)
    return row.uid_validity, row.last_uid, row.now


async def start_cursor(
    connection: AsyncConnection, lease: Lease, uid_validity: UidValidity, last_uid: Uid, start_uid: Uid
) -> None:
    """Gives a folder that was never selected its first place. Repeating it is harmless. Raises Fenced."""
    start = (
        sa.update(cursor)
        .where(held_by(lease), cursor.c.uid_validity.is_(None))
        .values(uid_validity=uid_validity, last_uid=last_uid, start_uid=start_uid, updated_at=db_now())
    )
    if (await connection.execute(start)).rowcount == 0:
        present, _, _ = await place(connection, lease)
        if present != uid_validity:
            raise StoreUnavailable(f"{lease.key}: the cursor already stands at UIDVALIDITY {present}")


def _is(key: FolderKey) -> tuple[sa.ColumnElement[bool], ...]:
    return (cursor.c.mailbox == key.mailbox, cursor.c.folder == key.folder)


def _state(row: sa.Row[Any]) -> CursorState:
    fields = dict(row._mapping)  # noqa: SLF001 - the documented way to a row's names
    key = FolderKey(fields.pop("mailbox"), fields.pop("folder"))
    live = bool(fields.pop("lease_live"))
    return CursorState(key=key, cursor_id=fields.pop("id"), lease_live=live, **fields)


async def read_epochs(connection: AsyncConnection) -> dict[FolderKey, Epoch]:
    """The present epoch of every folder."""
    rows = await connection.execute(sa.select(cursor.c.mailbox, cursor.c.folder, cursor.c.epoch))
    return {FolderKey(row.mailbox, row.folder): Epoch(row.epoch) for row in rows}
