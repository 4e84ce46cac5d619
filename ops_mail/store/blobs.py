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
_ROUNDS = 5


class BlobStore(Protocol):
    """Where content lives. Another implementation may keep it in files or in a bucket."""

    async def put(self, connection: AsyncConnection, blobs: Sequence[Blob]) -> None:
        """Makes sure that all `blobs` are stored before the transaction of `connection` commits. Repeatable."""

    def open(self, sha256: str) -> AsyncIterator[bytes]:
        """The plain content in pieces, checked against its hash at the end. StoreRefused if absent or damaged."""


class DatabaseBlobs:
    """`ops_mail_blob` and `ops_mail_blob_chunk`: in pieces that no packet limit matters to."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, connection: AsyncConnection, blobs: Sequence[Blob]) -> None:
        """As BlobStore.put. In the order of the hashes, so that two transactions with common content wait in turn."""
        wanted = {one.sha256: one for one in blobs}
        for _ in range(_ROUNDS):
            present = await self._lock_present(connection, wanted)
            missing = [wanted[sha256] for sha256 in sorted(wanted.keys() - present)]
            if not missing or await self._insert_heads(connection, missing):
                break
        else:
            raise StoreRefused("content could not be stored: its hashes come and go")
        await self._insert_chunks(connection, missing)

    async def _lock_present(self, connection: AsyncConnection, wanted: dict[str, Blob]) -> set[str]:
        """Which are there. The shared lock keeps them there until our reference to them is committed."""
        names = sorted(wanted)
        found: set[str] = set()
        for at in range(0, len(names), 500):
            select = sa.select(blob.c.sha256).where(blob.c.sha256.in_(names[at : at + 500])).order_by(blob.c.sha256)
            found.update((await connection.execute(select.with_for_update(read=True))).scalars())
        return found

    async def _insert_heads(self, connection: AsyncConnection, missing: list[Blob]) -> bool:
        """False if another transaction stored one of them meanwhile (nothing of this statement remains then)."""
        now = (await connection.execute(sa.select(db_now()))).scalar_one()
        rows = [
            {"sha256": one.sha256, "size_bytes": one.size_bytes, "encoding": one.encoding, "created_at": now}
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
        decode = _decoder(head.encoding)
        digest, size, seq = hashlib.sha256(), 0, 0
        while (data := await self._chunk(sha256, seq)) is not None:
            seq += 1
            for piece in decode(data):
                digest.update(piece)
                size += len(piece)
                yield piece
        if digest.hexdigest() != sha256 or size != head.size_bytes:
            raise StoreRefused(f"the content stored under {sha256} is damaged")

    async def _chunk(self, sha256: str, seq: int) -> bytes | None:
        find = sa.select(blob_chunk.c.data).where(blob_chunk.c.sha256 == sha256, blob_chunk.c.seq == seq)
        async with self._database.reading("reading content") as connection:
            return (await connection.execute(find)).scalar_one_or_none()


def _read_piece(path: Path, offset: int) -> bytes:
    # Opened anew for each piece: a cancelled landing leaves no open file behind in a thread that nobody waits for.
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(CHUNK_BYTES)


def _chunk_size(row: Row) -> int:
    return len(row["data"]) + 200


class _Decode(Protocol):
    def __call__(self, data: bytes) -> Iterator[bytes]: ...


def _decoder(encoding: str) -> _Decode:
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
