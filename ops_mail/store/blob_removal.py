"""Removing blobs that nothing refers to, without ever taking one away from a landing that is about to refer to it.

Whoever stores content locks its row in `ops_mail_blob` until the reference is committed. So a blob may go when its row
is locked here and no reference can be seen: a landing that comes later finds no row, and stores the content again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import sqlalchemy as sa
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.store.database import Database
from ops_mail.store.schema import attachment, blob, blob_chunk, message

log = structlog.get_logger("ops_mail.store")

Delete = Callable[[str, str, str | None], Awaitable[None]]
"""Deletes the object of a hash and an encoding, kept at a place (as `ops_mail_blob.place`) outside of the database."""

_PAGE = 500
_PAUSE_SECONDS = 0.05


class FormerPlaceError(Exception):
    """Content is kept where STORE_URL led before, and cannot be deleted from there now."""


async def remove_unused(database: Database, sha256: str, delete: Delete | None = None) -> bool:
    """Whether the blob was there, unused, and is gone now. Raises StoreError.

    One in a former place that cannot be reached keeps its row, and so is tried again with each look through all.
    """
    try:
        return await database.writing("removing content", partial(_remove, sha256=sha256, delete=delete))
    except FormerPlaceError as error:
        log.warning("content_not_removed", sha256=sha256, error=str(error),
                    remedy="make the place reachable, or delete the object there by hand")  # fmt: skip
        return False


async def remove_all_unused(database: Database, stop: asyncio.Event, delete: Delete | None = None) -> int:
    """Looks through all blobs; how many were removed. What a changed parser or a removed mail has left behind."""
    last, removed = "", 0
    while not stop.is_set():
        async with database.reading("looking for unused content") as connection:
            names = (
                await connection.execute(
                    sa.select(blob.c.sha256).where(blob.c.sha256 > last).order_by(blob.c.sha256).limit(_PAGE)
                )
            ).scalars().all()  # fmt: skip
            used = await _used(connection, names)
        for sha256 in names:
            if sha256 not in used:
                removed += await remove_unused(database, sha256, delete)
        if len(names) < _PAGE:
            break
        last = names[-1]
        await asyncio.sleep(_PAUSE_SECONDS)
    return removed


async def _used(connection: AsyncConnection, names: Sequence[str]) -> set[str]:
    raw = message.c.raw_sha256
    raws = sa.select(raw).where(raw.in_(names), message.c.content_removed_at.is_(None))
    files = sa.select(attachment.c.sha256).where(attachment.c.sha256.in_(names))
    return set((await connection.execute(raws)).scalars()) | set((await connection.execute(files)).scalars())


async def _remove(connection: AsyncConnection, sha256: str, delete: Delete | None) -> bool:
    lock = sa.select(blob.c.encoding, blob.c.place).where(blob.c.sha256 == sha256).with_for_update()
    row = (await connection.execute(lock)).one_or_none()
    if row is None or await _used(connection, [sha256]):
        return False
    await connection.execute(sa.delete(blob_chunk).where(blob_chunk.c.sha256 == sha256))
    await connection.execute(sa.delete(blob).where(blob.c.sha256 == sha256))
    if delete is not None:
        # Before the commit, while nobody can store it again. If the commit fails, the row is there without its
        # object: nothing refers to it, and whoever stores the content again looks for the object as well.
        await delete(sha256, row.encoding, row.place)
    return True
