"""The header block: where its fields are and where it ends."""

from __future__ import annotations

import itertools
import re
from collections.abc import Container
from dataclasses import dataclass

from ops_mail.mime.defects import Defect
from ops_mail.mime.notes import Notes

_FIELD = re.compile(
    rb"([!-9;-~]++)[ \t]*+:[ \t]*+"  # the space before the colon is RFC 5322 section 4.5 (obsolete)
    rb"([^\r\n]*+(?:(?:\r\n|\n|\r)[ \t][^\r\n]*+)*+)"
    rb"(?:\r\n|\n|\r|\Z)"
)
_LINE = re.compile(rb"[^\r\n]*+(\r\n|\n|\r|\Z)")
_FOLDED_LINE = re.compile(rb"[^\r\n]*+(?:(?:\r\n|\n|\r)[ \t][^\r\n]*+)*+(?:\r\n|\n|\r|\Z)")
_LINE_TEXT = re.compile(rb"[^\r\n]*+")
_BREAK = re.compile(rb"\r\n|\n|\r")
_BLANK_LINES = re.compile(rb"(?:[ \t]*+(?:\r\n|\n|\r))++")
_EMPTY_LINE = re.compile(rb"(?:\r\n|\n|\r)(?:\r\n|\n|\r)")
# After a line that is no field, only a well-known one proves that the header goes on.
_KNOWN = (
    rb"(?:from|to|cc|bcc|subject|date|sender|reply-to|message-id|in-reply-to|references|received|return-path|"
    rb"delivered-to|mime-version|content-[a-z-]{2,30}|x-[a-z0-9-]{2,60}|dkim-signature|authentication-results|"
    rb"list-[a-z-]{2,20}|errors-to|precedence|importance|user-agent|status)[ \t]{0,9}:"
)
_KNOWN_FIELD = re.compile(_KNOWN, re.IGNORECASE)
_KNOWN_FIELD_LINE = re.compile(rb"(?:\A|(?<=[\r\n]))" + _KNOWN, re.IGNORECASE)
# "X-Odd name: value" is a field with a wrong name; "Dear Sir: …" is text.
_MISNAMED_FIELD = re.compile(rb"(?:[A-Za-z0-9]{1,30}-[^:\r\n]{1,80}|[^\s:]{2,60}):[ \t\r\n]")
_LOOK_AHEAD = 16384


@dataclass(frozen=True, slots=True)
class HeaderBlock:
    """Fields as (name, unfolded value), in order, bytes as sent; `body` is where the body begins."""

    fields: tuple[tuple[str, bytes], ...]
    body: int

    def first(self, name: str) -> bytes | None:
        """The value of the first field of this (lower-case) name."""
        for key, value in self.fields:
            if key.lower() == name:
                return value
        return None

    def all(self, name: str) -> list[bytes]:
        return [value for key, value in self.fields if key.lower() == name]


def read_fields(
    data: bytes, start: int, end: int, boundaries: Container[bytes], notes: Notes, *, top: bool
) -> HeaderBlock:
    """The header block that begins at `start`. It ends at an empty line, at a delimiter line of `boundaries`,
    or where the text can no longer be header fields. Linear in the length of the block.

    At the `top` of a mail an mbox "From " line and empty lines before the first field are passed over.
    """
    position = _skip_before(data, start, end) if top else start
    fields: list[tuple[str, bytes]] = []
    stop = min(end, position + notes.limits.max_header_bytes)
    empty_line = -1  # the next one, once it was looked for
    for step in itertools.count(1):
        if position >= end:
            break
        if step % 256 == 0:
            notes.check_time()
        first = data[position]
        if first in (0x0A, 0x0D):
            match = _BREAK.match(data, position)
            return HeaderBlock(tuple(fields), match.end() if match else end)
        if first == 0x2D and _is_delimiter(data, position, boundaries):
            return HeaderBlock(tuple(fields), position)
        field = _FIELD.match(data, position, end)
        if field is not None:
            if len(fields) < notes.limits.max_header_fields and field.end() <= stop:
                fields.append((field[1].decode("ascii"), _unfolded(field[2])))
            else:
                notes.add(Defect.HEADER_LIMIT)
            position = field.end()
            continue
        if empty_line < position:
            empty = _EMPTY_LINE.search(data, position, end)
            empty_line = empty.start() if empty else end
        going_on = _after_misnamed(data, position, end) or _next_known_field(data, position, empty_line)
        if going_on is None:
            notes.add(Defect.NO_HEADER_END if fields else Defect.NO_HEADER)
            return HeaderBlock(tuple(fields), position)
        notes.add(Defect.HEADER_JUNK)
        position = going_on
    return HeaderBlock(tuple(fields), end)


def _skip_before(data: bytes, start: int, end: int) -> int:
    position = start
    if data.startswith(b"\xef\xbb\xbf", position):
        position += 3
    blank = _BLANK_LINES.match(data, position, end)
    if blank is not None and _FIELD.match(data, blank.end(), end):
        position = blank.end()
    while data.startswith((b"From ", b">From "), position):
        line = _LINE.match(data, position, end)
        if line is None or line.end() == position:
            break
        position = line.end()
    # A first field that is indented would be a continuation of nothing.
    indent = position
    while indent < end and data[indent] in (0x20, 0x09):
        indent += 1
    return indent if indent > position and _KNOWN_FIELD.match(data, indent, end) else position


def delimited(line: bytes, boundaries: Container[bytes]) -> tuple[bytes, bool] | None:
    """(boundary, is the closing one) of a line that begins with "--"; None when it is no open boundary's."""
    text = line[2:]
    for candidate in (text, text.rstrip(b" \t")):
        if candidate in boundaries:
            return candidate, False
        if candidate.endswith(b"--") and candidate[:-2] in boundaries:
            return candidate[:-2], True
    return None


def _is_delimiter(data: bytes, position: int, boundaries: Container[bytes]) -> bool:
    line = _LINE_TEXT.match(data, position) if data.startswith(b"--", position) else None
    return line is not None and delimited(line[0], boundaries) is not None


def _after_misnamed(data: bytes, position: int, end: int) -> int | None:
    if _MISNAMED_FIELD.match(data, position, end) is None:
        return None
    line = _FOLDED_LINE.match(data, position, end)
    return line.end() if line is not None else None


def _next_known_field(data: bytes, position: int, end: int) -> int | None:
    """Where the header goes on after junk: a well-known field before the next empty line (`end`)."""
    line = _LINE.match(data, position, end)
    if line is None:
        return None
    known = _KNOWN_FIELD_LINE.search(data, line.end(), min(end, position + _LOOK_AHEAD))
    return None if known is None else known.start()


def _unfolded(value: bytes) -> bytes:
    """RFC 5322 section 2.2.3: the line breaks go, the space behind them stays (a tab there is for folding)."""
    if b"\n" not in value and b"\r" not in value:
        return value.rstrip(b" \t")
    lines = _BREAK.split(value)
    return b"".join([lines[0], *(b" " + line[1:] if line[:1] == b"\t" else line for line in lines[1:])]).rstrip(b" \t")
