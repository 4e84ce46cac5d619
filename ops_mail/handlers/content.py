"""A mail's bytes, read from the store when a handler asks for them."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from ops_mail.errors import StoreRefused

T = TypeVar("T")

_PIECE_SECONDS = 60.0


class ContentSource:
    """Reads content on the loop that the database belongs to, for handlers that run elsewhere."""

    def __init__(self, loop: asyncio.AbstractEventLoop, open_content: Callable[[str], AsyncIterator[bytes]]) -> None:
        self._loop = loop
        self.open = open_content

    def call(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts `work` there."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)


class Content:
    """Bytes of `size_bytes` with the hash `sha256`, checked while they are read; None = there are none to read.

    In a plain function: `read`, `stream`, `save`. In an async one: `aread`, `astream`, `asave`. Nothing is kept in
    memory between calls. Each raises StoreError when the store cannot give the bytes.
    """

    __slots__ = ("_source", "sha256", "size_bytes")

    def __init__(self, source: ContentSource, sha256: str | None, size_bytes: int) -> None:
        self._source = source
        self.sha256 = sha256
        self.size_bytes = size_bytes

    def read(self) -> bytes:
        """All of it."""
        return b"".join(self.stream())

    def stream(self) -> Iterator[bytes]:
        """In pieces of some hundred KiB at most."""
        _refuse_inside_a_loop()
        pieces = self._pieces()
        try:
            while (piece := self._source.call(_next(pieces)).result(_PIECE_SECONDS)) is not None:
                yield piece
        finally:
            self._source.call(_close(pieces)).result(_PIECE_SECONDS)

    def save(self, path: Path) -> None:
        """Into a file that is there whole or not at all; an existing one is replaced."""
        with _whole_file(path) as file:
            for piece in self.stream():
                file.write(piece)

    async def aread(self) -> bytes:
        """As `read`."""
        return b"".join([piece async for piece in self.astream()])

    async def astream(self) -> AsyncIterator[bytes]:
        """As `stream`."""
        pieces = self._pieces()
        try:
            while (piece := await asyncio.wrap_future(self._source.call(_next(pieces)))) is not None:
                yield piece
        finally:
            await asyncio.wrap_future(self._source.call(_close(pieces)))

    async def asave(self, path: Path) -> None:
        """As `save`."""
        await asyncio.to_thread(self.save, path)

    def _pieces(self) -> AsyncIterator[bytes]:
        if self.sha256 is None:
            raise StoreRefused("this content was never received, or retention has removed it")
        return self._source.open(self.sha256)

    def __repr__(self) -> str:
        return f"Content(sha256={self.sha256!r}, size_bytes={self.size_bytes})"


async def _next(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)


async def _close(pieces: AsyncIterator[bytes]) -> None:
    close = getattr(pieces, "aclose", None)
    if close is not None:
        await close()


def _refuse_inside_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise AsyncNeeded


class AsyncNeeded(TypeError):
    """Raised where an async function would block its whole loop."""

    def __init__(self) -> None:
        super().__init__("in an async handler use aread, astream or asave")


class _whole_file:  # noqa: N801 - used as a function
    """A temporary file beside `path` that takes its name at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Any:
        handle, name = tempfile.mkstemp(prefix=f".{self._path.name[:50]}.", dir=self._path.parent)
        self._name = Path(name)
        self._file = os.fdopen(handle, "wb")
        return self._file

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        try:
            with self._file:
                if kind is None:
                    self._file.flush()
                    os.fsync(self._file.fileno())
            if kind is None:
                self._name.replace(self._path)
        finally:
            self._name.unlink(missing_ok=True)
