"""Bytes from the server → complete responses. Pure: no socket, no clock; any chunking gives the same result."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LINE_BYTES = 1024 * 1024
MAX_LITERALS = 1000
DEFAULT_LITERAL_LIMIT = 1024 * 1024

_LITERAL = re.compile(rb"\{(\d{1,10})\+?\}$")
# Status texts are for people and may end in `{5}` without announcing anything (RFC 3501 section 7.1).
_STATUS = re.compile(rb"\* (?:OK|NO|BAD|BYE|PREAUTH)\b", re.IGNORECASE)


class WireError(Exception):
    """The bytes are not IMAP. The stream can no longer be trusted."""


@dataclass(frozen=True, slots=True)
class Response:
    """One complete response: text, literal, text, literal, … text; `texts` has one item more than `literals`.

    Texts are without CRLF; each but the last ends in the `{n}` that announced the literal after it.
    A literal is None when it was larger than the reader's `literal_limit` and was dropped while it arrived.
    """

    texts: tuple[bytes, ...]
    literals: tuple[bytes | None, ...] = ()

    @property
    def first(self) -> bytes:
        """The text before any literal: tells what kind of response this is."""
        return self.texts[0]


class ResponseReader:
    """Takes chunks in any cut, gives responses. Work is linear in the bytes and never recurses."""

    def __init__(self) -> None:
        self.literal_limit = DEFAULT_LITERAL_LIMIT
        self._buffer = bytearray()
        self._start = 0  # where the unread part of the buffer begins
        self._searched = 0  # up to here there is no CRLF
        self._texts: list[bytes] = []
        self._literals: list[bytes | None] = []
        self._literal_missing: int | None = None  # bytes of the current literal that are still due
        self._dropping = False

    @property
    def is_empty(self) -> bool:
        """True when no byte waits and no response is half read."""
        return self._start == len(self._buffer) and not self._texts

    def push(self, chunk: bytes) -> None:
        """Adds a chunk; call `next` until it returns None."""
        self._buffer += chunk

    def next(self) -> Response | None:
        """The next complete response, or None when more bytes are needed. Raises WireError."""
        while True:
            if self._literal_missing is not None and not self._take_literal():
                self._compact()
                return None
            line = self._take_line()
            if line is None:
                self._compact()
                return None
            size = self._announced(line) if line.endswith(b"}") else None
            if size is None and not self._texts:  # nearly all lines: one text, no literal
                return Response((line,))
            self._texts.append(line)
            if size is None:
                response = Response(tuple(self._texts), tuple(self._literals))
                self._texts.clear()
                self._literals.clear()
                return response
            if len(self._literals) >= MAX_LITERALS:
                raise WireError("a response with too many literals")
            self._literal_missing = size
            self._dropping = size > self.literal_limit

    def _announced(self, line: bytes) -> int | None:
        if not self._texts and (not line.startswith(b"* ") or _STATUS.match(line)):
            return None
        found = _LITERAL.search(line)
        return int(found.group(1)) if found else None

    def _take_line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n", max(self._start, self._searched))
        if end < 0:
            self._searched = max(self._start, len(self._buffer) - 1)
            if len(self._buffer) - self._start > MAX_LINE_BYTES:
                raise WireError("a line longer than 1 MiB")
            return None
        line = bytes(self._buffer[self._start : end])
        self._start = self._searched = end + 2
        return line

    def _take_literal(self) -> bool:
        missing = self._literal_missing or 0
        available = len(self._buffer) - self._start
        if self._dropping:
            dropped = min(missing, available)
            self._start += dropped
            self._literal_missing = missing - dropped
            if dropped < missing:
                return False
            self._literals.append(None)
        else:
            if available < missing:
                return False
            self._literals.append(bytes(self._buffer[self._start : self._start + missing]))
            self._start += missing
        self._literal_missing = None
        self._searched = self._start
        return True

    def _compact(self) -> None:
        # bytearray drops its front without copying the rest; once a chunk, not once a line
        del self._buffer[: self._start]
        self._searched = max(0, self._searched - self._start)
        self._start = 0
