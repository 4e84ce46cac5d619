"""Contents outside of the database, one object each, named by hash; the table `ops_mail_blob` says which there are.

The order makes it safe: an object is written before its row is committed, and deleted while its row is locked. An
object without a row, left behind by a landing that failed, is collected when it is a day old.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.mail import Blob
from ops_mail.errors import StoreRefused
from ops_mail.store.blobs import ROUNDS, DatabaseBlobs, damaged, decoder, not_here
from ops_mail.store.database import Database
from ops_mail.store.schema import blob

ORPHAN_SECONDS = 86_400.0
_WRITERS = 8
_SUFFIXES = {"zstd": ".zst", "identity": ""}
_PLACE_CHARS = 512


class ObjectAbsent(StoreRefused):
    """There is no object of this name in the place."""


class Objects(Protocol):
    """A place for objects. Every method raises StoreUnavailable when the place does not answer or is full."""

    async def write(self, name: str, content: Sequence[bytes] | Path) -> None:
        """All of it, or nothing under that name; durable when this returns. An object that is there is replaced."""

    async def exists(self, name: str) -> bool:
        """Whether there is one."""

    def read(self, name: str) -> AsyncIterator[bytes]:
        """Its bytes in pieces. Raises ObjectAbsent when there is none."""

    async def delete(self, name: str) -> None:
        """Nothing happens when there is none."""

    def names_older_than(self, seconds: float) -> AsyncIterator[str]:
        """All whose last write is so long ago."""


def object_name(sha256: str, encoding: str) -> str:
    """Spread over 65,536 folders: no file system and no bucket has to list a million names in one."""
    return f"{sha256[:2]}/{sha256[2:4]}/{sha256}{_SUFFIXES[encoding]}"


class ExternalBlobs(DatabaseBlobs):
    """As BlobStore. `place` is the STORE_URL that leads to `objects`, as the table knows it."""

    def __init__(self, database: Database, objects: Objects, place: str) -> None:
        self.place = place.rstrip("/")[:_PLACE_CHARS]
        super().__init__(database, self.place)
        self.objects = objects

    async def put(self, connection: AsyncConnection, blobs: Sequence[Blob]) -> None:
        """As BlobStore.put."""
        wanted = {one.sha256: one for one in blobs}
        for _ in range(ROUNDS):
            present = await self._lock_present(connection, wanted)
            missing = [wanted[sha256] for sha256 in sorted(wanted.keys() - present.keys())]
            await self._write(missing, even_if_there=True)
            if not missing or await self._insert_heads(connection, missing):
                break
        else:
            raise StoreRefused("content could not be stored: its hashes come and go")
        await self._write([wanted[sha256] for sha256 in sorted(present)], even_if_there=False)
        moved = sorted(sha256 for sha256, place in present.items() if place != self.place)
        if moved:
            await connection.execute(sa.update(blob).where(blob.c.sha256.in_(moved)).values(place=self.place))

    async def _write(self, blobs: Sequence[Blob], *, even_if_there: bool) -> None:
        """Some at a time. A new one is written in any case, so that it is not taken for an old orphan meanwhile."""
        at_once = asyncio.Semaphore(_WRITERS)

        async def write(one: Blob) -> None:
            name = object_name(one.sha256, one.encoding)
            async with at_once:
                if even_if_there or not await self.objects.exists(name):
                    await self.objects.write(name, one.chunks)

        ends = await asyncio.gather(*(write(one) for one in blobs), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def open(self, sha256: str) -> AsyncIterator[bytes]:
        """As BlobStore.open. What was stored in the database before STORE_URL was changed is read from there."""
        async with self._database.reading("reading content") as connection:
            head = (await connection.execute(sa.select(blob).where(blob.c.sha256 == sha256))).one_or_none()
        if head is None:
            raise StoreRefused(f"no content is stored under {sha256}")
        if await self._chunk(sha256, 0) is not None:
            async for piece in super().open(sha256):
                yield piece
            return
        decode = decoder(head.encoding)
        digest, size = hashlib.sha256(), 0
        try:
            async for data in self.objects.read(object_name(sha256, head.encoding)):
                for piece in decode(data):
                    digest.update(piece)
                    size += len(piece)
                    yield piece
        except ObjectAbsent as error:
            if head.place == self.place:
                raise
            raise not_here(sha256, head.place, self.place) from error
        if digest.hexdigest() != sha256 or size != head.size_bytes:
            raise damaged(sha256)

    async def delete_object(self, sha256: str, encoding: str) -> None:
        """For `blob_removal`."""
        await self.objects.delete(object_name(sha256, encoding))

    async def remove_orphans(self, stop: asyncio.Event, older_than_seconds: float = ORPHAN_SECONDS) -> int:
        """Deletes objects that have had no row for so long; how many."""
        removed = 0
        async for name in self.objects.names_older_than(older_than_seconds):
            if stop.is_set():
                break
            sha256 = name.rpartition("/")[2].partition(".")[0]
            async with self._database.reading("looking for content") as connection:
                known = (await connection.execute(sa.select(blob.c.sha256).where(blob.c.sha256 == sha256))).first()
            if known is None:
                await self.objects.delete(name)
                removed += 1
        return removed
