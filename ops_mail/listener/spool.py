"""Files for what is too large to hold in memory: fetched pieces in, encoded chunks out, gone after the landing."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from ops_mail.core.mail import PreparedMail, RawMail


class TooLarge(Exception):
    """More bytes came than allowed; the file holds none of them any more."""


class Spool:
    """One folder for one mailbox, emptied at the start of each session. All disk work runs in threads.

    Every method raises OSError when the disk does not take it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        assert self._path is not None  # noqa: S101 - `open` comes first
        return self._path

    async def open(self) -> None:
        """Start with an empty folder."""
        await self.close()
        self._path = await asyncio.to_thread(self._make)

    def _make(self) -> Path:
        # What cleans up temporary folders may take the root itself from a process that runs for weeks.
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=self._root))

    async def close(self) -> None:
        """Remove the folder and what is left in it."""
        path, self._path = self._path, None
        if path is not None:
            await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)

    async def write(self, pieces: AsyncIterator[bytes], max_bytes: int, beat: Callable[[], None]) -> Path:
        """A new file with all pieces; `beat` after each. Raises `TooLarge` as soon as they exceed `max_bytes`."""
        path = self.path / uuid.uuid4().hex
        written = 0
        async with contextlib.aclosing(pieces) as stream:  # type: ignore[type-var]  # an async generator at run time
            file = await asyncio.to_thread(path.open, "wb")
            try:
                async for piece in stream:
                    written += len(piece)
                    if written > max_bytes:
                        raise TooLarge
                    await asyncio.to_thread(file.write, piece)
                    beat()
            except BaseException:
                await asyncio.to_thread(path.unlink, missing_ok=True)
                raise
            finally:
                await asyncio.to_thread(file.close)
        return path

    async def discard(self, raws: Iterable[RawMail], prepared: Iterable[PreparedMail]) -> None:
        """Remove the files of a batch that has landed."""
        paths = [raw.content for raw in raws if isinstance(raw.content, Path)]
        paths += [blob.chunks for mail in prepared for blob in mail.blobs if isinstance(blob.chunks, Path)]
        if paths:
            await asyncio.to_thread(_unlink_all, paths)


def _unlink_all(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
