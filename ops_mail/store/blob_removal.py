"""Removing blobs that nothing refers to, without ever taking one away from a landing that is about to refer to it.

Whoever stores content locks its row in `ops_mail_blob` until the reference is committed. So a blob may go when its row
is locked here and no reference can be seen: a landing that comes later finds no row, and stores the content again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.store.database import Database
from ops_mail.store.schema import attachment, blob, blob_chunk, message

Delete = Callable[[str, str], Awaitable[None]]
"""Deletes the object of a hash and an encoding, where contents are kept outside of the database."""

_PAGE = 500
_PAUSE_SECONDS = 0.05


async def remove_unused(database: Database, sha256: str, delete: Delete | None = None) -> bool:
    """Whether the blob was there, unused, and is gone now. Raises StoreError."""
    return await database.writing("removing content", partial(_remove, sha256=sha256, delete=delete))


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
    lock = sa.select(blob.c.encoding).where(blob.c.sha256 == sha256).with_for_update()
    encoding = (await connection.execute(lock)).scalar_one_or_none()
    if encoding is None or await _used(connection, [sha256]):
        return False
    await connection.execute(sa.delete(blob_chunk).where(blob_chunk.c.sha256 == sha256))
    await connection.execute(sa.delete(blob).where(blob.c.sha256 == sha256))
    if delete is not None:
        # Before the commit, while nobody can store it again. If the commit fails, the row is there without its
        # object: nothing refers to it, and whoever stores the content again looks for the object as well.
        await delete(sha256, encoding)
    return True
