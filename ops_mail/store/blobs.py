"""Content-addressed storage of raw mails and attachments; the default keeps it in two tables of the same database."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa
import sqlalchemy.exc as sa_exc
import zstandard
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.mail import Blob
from ops_mail.errors import StoreRefused
from ops_mail.store.columns import db_now
from ops_mail.store.database import Database
from ops_mail.store.edge import is_duplicate
from ops_mail.store.inserts import Row, insert_many
from ops_mail.store.schema import blob, blob_chunk

CHUNK_BYTES = 256 * 1024
_FEED_BYTES = 256  # 4 bytes of zstd may stand for 128 KiB, so input is fed in drops: at most 8 MiB come out of each
ROUNDS = 5  # a hash that comes and goes is looked for so often
_NAMES = 500  # hashes in one statement


class BlobStore(Protocol):
    """Where content lives. Another implementation may keep it in files or in a bucket."""

    async def put(self, connection: AsyncConnection, blobs: Sequence[Blob]) -> None:
        """Makes sure that all `blobs` are stored before the transaction of `connection` commits. Repeatable."""

    def open(self, sha256: str) -> AsyncIterator[bytes]:
        """The plain content in pieces, checked against its hash at the end.

        Raises StoreRefused if it is absent, damaged, or kept where STORE_URL does not lead (any more).
        """


class DatabaseBlobs:
    """`ops_mail_blob` and `ops_mail_blob_chunk`: in pieces that no packet limit matters to."""

    def __init__(self, database: Database, place: str | None = None) -> None:
        self._database = database
        self._place = place

    async def put(self, connection: AsyncConnection, blobs: Sequence[Blob]) -> None:
        """As BlobStore.put. In the order of the hashes, so that two transactions with common content wait in turn."""
        wanted = {one.sha256: one for one in blobs}
        for _ in range(ROUNDS):
            present = await self._lock_present(connection, wanted)
            missing = [wanted[sha256] for sha256 in sorted(wanted.keys() - present.keys())]
            if not missing or await self._insert_heads(connection, missing):
                break
        else:
            raise StoreRefused("content could not be stored: its hashes come and go")
        # What was stored elsewhere before STORE_URL was changed: nobody knows for how long it stays there.
        elsewhere = await self._without_chunks(connection, sorted(present))
        await self._insert_chunks(connection, [*missing, *(wanted[sha256] for sha256 in elsewhere)])

    async def _lock_present(self, connection: AsyncConnection, wanted: dict[str, Blob]) -> dict[str, str | None]:
        """Which are there, and their places. The shared lock keeps them there until our reference is committed."""
        names = sorted(wanted)
        found: dict[str, str | None] = {}
        for at in range(0, len(names), _NAMES):
            mine = blob.c.sha256.in_(names[at : at + _NAMES])
            select = sa.select(blob.c.sha256, blob.c.place).where(mine).order_by(blob.c.sha256)
            rows = await connection.execute(select.with_for_update(read=True))
            found.update((row.sha256, row.place) for row in rows)
        return found

    async def _without_chunks(self, connection: AsyncConnection, names: list[str]) -> list[str]:
        chunked: set[str] = set()
        for at in range(0, len(names), _NAMES):
            first = sa.and_(blob_chunk.c.sha256.in_(names[at : at + _NAMES]), blob_chunk.c.seq == 0)
            chunked.update((await connection.execute(sa.select(blob_chunk.c.sha256).where(first))).scalars())
        return [name for name in names if name not in chunked]

    async def _insert_heads(self, connection: AsyncConnection, missing: list[Blob]) -> bool:
        """False if another transaction stored one of them meanwhile (nothing of this statement remains then)."""
        now = (await connection.execute(sa.select(db_now()))).scalar_one()
        rows = [
            {
                "sha256": one.sha256,
                "size_bytes": one.size_bytes,
                "encoding": one.encoding,
                "created_at": now,
                "place": self._place,
            }
            for one in missing
        ]
        try:
            await connection.execute(sa.insert(blob), rows)
        except sa_exc.IntegrityError as error:
            if not is_duplicate(error):
                raise
            return False
        return True

    async def _insert_chunks(self, connection: AsyncConnection, missing: list[Blob]) -> None:
        small: list[Row] = []
        for one in missing:
            if isinstance(one.chunks, Path):
                await self._insert_file(connection, one.sha256, one.chunks)
            else:
                small += [{"sha256": one.sha256, "seq": seq, "data": data} for seq, data in enumerate(one.chunks)]
        await insert_many(connection, blob_chunk, small, _chunk_size)

    async def _insert_file(self, connection: AsyncConnection, sha256: str, path: Path) -> None:
        seq = 0
        while data := await asyncio.to_thread(_read_piece, path, seq * CHUNK_BYTES):
            await insert_many(connection, blob_chunk, [{"sha256": sha256, "seq": seq, "data": data}], _chunk_size)
            seq += 1

    async def open(self, sha256: str) -> AsyncIterator[bytes]:
        """As BlobStore.open. Each chunk is a short query of its own: no connection is held while the reader works."""
        async with self._database.reading("reading content") as connection:
            head = (await connection.execute(sa.select(blob).where(blob.c.sha256 == sha256))).one_or_none()
        if head is None:
            raise StoreRefused(f"no content is stored under {sha256}")
        decode = decoder(head.encoding)
        digest, size, seq = hashlib.sha256(), 0, 0
        while (data := await self._chunk(sha256, seq)) is not None:
            seq += 1
            for piece in decode(data):
                digest.update(piece)
                size += len(piece)
                yield piece
        if digest.hexdigest() != sha256 or size != head.size_bytes:
            raise damaged(sha256) if seq else not_here(sha256, head.place, "db:")

    async def _chunk(self, sha256: str, seq: int) -> bytes | None:
        find = sa.select(blob_chunk.c.data).where(blob_chunk.c.sha256 == sha256, blob_chunk.c.seq == seq)
        async with self._database.reading("reading content") as connection:
            return (await connection.execute(find)).scalar_one_or_none()


def damaged(sha256: str) -> StoreRefused:
    """The error of a content that is there and is not what was stored."""
    return StoreRefused(f"the content stored under {sha256} is damaged")


def not_here(sha256: str, place: str | None, here: str) -> StoreRefused:
    """The error of a content that is kept in another place than `here`, the one that STORE_URL names."""
    if place is None:
        return StoreRefused(
            f"content {sha256} is not where OPS_MAIL_STORE_URL leads ({here}): it was deleted there, or it is in the"
            " directory or bucket that this setting named when the mail landed"
        )
    return StoreRefused(
        f"content {sha256} is kept in {place}; to read it, set OPS_MAIL_STORE_URL to that (it leads to {here} now)"
    )


def _read_piece(path: Path, offset: int) -> bytes:
    # Opened anew for each piece: a cancelled landing leaves no open file behind in a thread that nobody waits for.
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(CHUNK_BYTES)


def _chunk_size(row: Row) -> int:
    return len(row["data"]) + 200


class _Decode(Protocol):
    def __call__(self, data: bytes) -> Iterator[bytes]: ...


def decoder(encoding: str) -> _Decode:
    """What makes plain pieces of stored ones, in their order. Raises StoreRefused, it and what it returns."""
    if encoding == "identity":
        return lambda data: iter((data,))
    if encoding != "zstd":
        raise StoreRefused(f"content is stored in an unknown encoding: {encoding}")
    stream = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)

    def decode(data: bytes) -> Iterator[bytes]:
        pending = bytearray()
        for at in range(0, len(data), _FEED_BYTES):
            try:
                pending += stream.decompress(data[at : at + _FEED_BYTES])
            except zstandard.ZstdError as error:
                raise StoreRefused(f"stored content cannot be decoded: {error}") from error
            if len(pending) >= CHUNK_BYTES:
                yield bytes(pending)
                pending.clear()
        if pending:
            yield bytes(pending)

    return decode
