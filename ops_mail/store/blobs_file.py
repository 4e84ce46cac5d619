"""STORE_URL=file:///directory: each object a file. A file has its name only when it is whole and on the disk."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ops_mail.errors import StoreUnavailable
from ops_mail.store.blobs_external import ObjectAbsent

T = TypeVar("T")

_PIECE_BYTES = 256 * 1024
_UNFINISHED = ".part"


class FileObjects:
    """As `Objects`. All disk work is done in threads."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def is_there(self) -> bool:
        """Whether the directory exists. One that is not mounted, or is another machine's, does not."""
        return await self._call("looking for", "", self.directory.is_dir)

    async def write(self, name: str, content: Sequence[bytes] | Path) -> None:
        """As Objects.write."""
        await self._call("writing", name, self._write, name, content)

    async def exists(self, name: str) -> bool:
        """As Objects.exists."""
        return await self._call("looking for", name, (self.directory / name).is_file)

    async def read(self, name: str) -> AsyncIterator[bytes]:
        """As Objects.read."""
        path, offset = self.directory / name, 0
        while piece := await self._call("reading", name, _read_piece, path, offset):
            offset += len(piece)
            yield piece

    async def delete(self, name: str) -> None:
        """As Objects.delete. Folders stay: another writer may be about to use one."""
        await self._call("deleting", name, lambda: (self.directory / name).unlink(missing_ok=True))

    async def names_older_than(self, seconds: float) -> AsyncIterator[str]:
        """As Objects.names_older_than. What a killed process has left unfinished is told too."""
        for folder in await self._call("listing", "", self._folders):
            for name in await self._call("listing", folder, self._old_files, folder, time.time() - seconds):
                yield name

    async def _call(self, doing: str, name: str, work: Callable[..., T], *values: object) -> T:
        try:
            return await asyncio.to_thread(work, *values)
        except FileNotFoundError as error:
            raise ObjectAbsent(f"{doing} {name}: there is no such file in {self.directory}") from error
        except OSError as error:
            raise StoreUnavailable(f"{doing} {name} in {self.directory}: {error.strerror or error}") from error

    def _write(self, name: str, content: Sequence[bytes] | Path) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}{_UNFINISHED}")
        try:
            with unfinished.open("xb") as file:
                for piece in _pieces(content):
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            _sync_folder(path.parent)
        finally:
            unfinished.unlink(missing_ok=True)

    def _folders(self) -> list[str]:
        return [f"{one.parent.name}/{one.name}" for one in sorted(self.directory.glob("??/??")) if one.is_dir()]

    def _old_files(self, folder: str, before: float) -> list[str]:
        files = [one for one in (self.directory / folder).iterdir() if one.is_file()]
        return [f"{folder}/{one.name}" for one in files if one.stat().st_mtime < before]


def _pieces(content: Sequence[bytes] | Path) -> Iterator[bytes]:
    if not isinstance(content, Path):
        yield from content
        return
    with content.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _read_piece(path: Path, offset: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(_PIECE_BYTES)


def _sync_folder(folder: Path) -> None:
    """The new name itself has to reach the disk as well."""
    for each in (folder, folder.parent, folder.parent.parent):
        handle = os.open(each, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
