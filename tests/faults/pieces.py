"""An IMAP stream, cut into lines and literals."""

from __future__ import annotations

import re
from collections.abc import Iterator


class Pieces:
    """Cuts a stream into lines and, behind a line that ends in `{n}`, the literal's bytes, which are no lines."""

    def __init__(self) -> None:
        self._held = b""
        self._literal = 0

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield what is complete as (bytes, is it a line); an unfinished line is held."""
        self._held += data
        while self._held:
            if self._literal:
                piece, self._held = self._held[: self._literal], self._held[self._literal :]
                self._literal -= len(piece)
                yield piece, False
                continue
            end = self._held.find(b"\n") + 1
            if end == 0:
                return
            line, self._held = self._held[:end], self._held[end:]
            if size := re.search(rb"\{(\d+)\+?\}\r?\n$", line):
                self._literal = int(size[1])
            yield line, True
