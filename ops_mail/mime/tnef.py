"""winmail.dat opened: TNEF (MS-OXTNEF), the container in which Outlook and Exchange wrap attachments."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from ops_mail.mime.defects import Defect
from ops_mail.mime.notes import Notes

_SIGNATURE = b"\x78\x9f\x3e\x22"
_ATTACH_REND_DATA = 0x9002
_ATTACH_TITLE = 0x8010
_ATTACH_DATA = 0x800F
_ATTACH_TRANSPORT_NAME = 0x9001
_ATTACH_PROPS = 0x9005
_MESSAGE_PROPS = 0x9003
_BODY = 0x800C
_OEM_CODEPAGE = 0x9007

_PR_BODY = 0x1000
_PR_BODY_HTML = 0x1013
_PR_ATTACH_DATA = 0x3701
_PR_ATTACH_FILENAME = 0x3704
_PR_ATTACH_LONG_FILENAME = 0x3707
_PR_DISPLAY_NAME = 0x3001
_PR_ATTACH_MIME_TAG = 0x370E
_PR_ATTACH_CONTENT_ID = 0x3712

_FIXED = {0x02: 4, 0x03: 4, 0x04: 4, 0x0A: 4, 0x0B: 4, 0x05: 8, 0x06: 8, 0x07: 8, 0x14: 8, 0x40: 8, 0x48: 16}
_VARIABLE = frozenset((0x0D, 0x1E, 0x1F, 0x102))
_UNICODE = 0x1F
_IID_SIZE = 16


@dataclass(slots=True)
class TnefFile:
    """An attachment on its way out; filled attribute by attribute."""

    name: str | None = None
    content_type: str | None = None
    content_id: str | None = None
    content: bytes = b""
    title: str | None = None


@dataclass(slots=True)
class Tnef:
    """What a container holds; `text` and `html` are those of the message itself."""

    files: list[TnefFile] = field(default_factory=list)
    text: str | None = None
    html: bytes | None = None
    broken: bool = False

    @property
    def complete(self) -> bool:
        """Nothing is lost when the container itself is not kept."""
        return not self.broken and (bool(self.files) or self.text is not None or self.html is not None)


class _BrokenError(Exception):
    """The container ends before what it announces."""


def read_tnef(data: bytes, notes: Notes, depth: int = 0) -> Tnef | None:
    """What a winmail.dat holds; None when it is none. What cannot be read is left out (noted). Linear."""
    if not data.startswith(_SIGNATURE):
        notes.add(Defect.BAD_TNEF)
        return None
    found = Tnef()
    codec = "cp1252"
    current: TnefFile | None = None
    try:
        for attribute, content in _attributes(data, notes):
            if attribute == _OEM_CODEPAGE and len(content) >= 4:
                codec = _codec(struct.unpack_from("<I", content)[0])
            elif attribute == _ATTACH_REND_DATA:
                if not notes.take_part():
                    found.broken = True
                    break
                current = TnefFile()
                found.files.append(current)
            elif attribute == _BODY:
                found.text = _text(0, content, codec)
            elif attribute == _MESSAGE_PROPS:
                _message(found, content, codec, notes)
            elif current is not None:
                _attachment(found, current, attribute, content, codec, notes, depth)
    except _BrokenError:
        notes.add(Defect.BAD_TNEF)
        found.broken = True
    for file in found.files:
        file.name = file.name or file.title
    found.files = [file for file in found.files if file.content or file.name]
    return found


def _codec(page: int) -> str:
    known = {932: "cp932", 936: "gb18030", 949: "cp949", 950: "cp950", 65001: "utf_8", 874: "cp874"}
    return known.get(page) or (f"cp{page}" if 1250 <= page <= 1258 else "cp1252")


def _attributes(data: bytes, notes: Notes) -> Iterator[tuple[int, bytes]]:
    position = 6
    while position + 9 <= len(data):
        notes.check_time()
        level, attribute, length = struct.unpack_from("<BII", data, position)
        begin = position + 9
        if level not in (1, 2) or begin + length > len(data):
            raise _BrokenError
        yield attribute & 0xFFFF, data[begin : begin + length]
        position = begin + length + 2
    if data[position:].strip(b"\0"):
        raise _BrokenError


def _message(found: Tnef, content: bytes, codec: str, notes: Notes) -> None:
    for prop, kind, value in _properties(content, notes):
        if prop == _PR_BODY:
            found.text = _text(kind, value, codec)
        elif prop == _PR_BODY_HTML:
            found.html = (
                _text(kind, value, codec).encode("utf_8", "replace") if kind == _UNICODE else value.rstrip(b"\0")
            )


def _attachment(
    found: Tnef, current: TnefFile, attribute: int, content: bytes, codec: str, notes: Notes, depth: int
) -> None:
    if attribute == _ATTACH_TITLE:
        current.title = _text(0, content, codec)
    elif attribute == _ATTACH_TRANSPORT_NAME and not current.name:
        current.name = _text(0, content, codec) or None
    elif attribute == _ATTACH_DATA:
        current.content = content
    elif attribute == _ATTACH_PROPS:
        _attachment_properties(found, current, content, codec, notes, depth)


def _attachment_properties(
    found: Tnef, current: TnefFile, content: bytes, codec: str, notes: Notes, depth: int
) -> None:
    for prop, kind, value in _properties(content, notes):
        if prop == _PR_ATTACH_LONG_FILENAME:
            current.name = _text(kind, value, codec) or current.name
        elif prop in (_PR_ATTACH_FILENAME, _PR_DISPLAY_NAME):
            current.title = current.title or _text(kind, value, codec)
        elif prop == _PR_ATTACH_MIME_TAG:
            current.content_type = _text(kind, value, codec).strip().lower() or None
        elif prop == _PR_ATTACH_CONTENT_ID:
            current.content_id = _text(kind, value, codec).strip().strip("<>") or None
        elif prop == _PR_ATTACH_DATA:
            inner = value[_IID_SIZE:]
            if inner.startswith(_SIGNATURE) and depth < 8:
                nested = read_tnef(inner, notes, depth + 1)
                if nested is not None:
                    found.files += nested.files
            current.content = current.content or inner


def _text(kind: int, value: bytes, codec: str) -> str:
    """A string of the container; like any of C, it ends at its first NUL."""
    text = value.decode("utf_16_le" if kind == _UNICODE else codec, "replace")
    return text.partition("\0")[0]


def _properties(data: bytes, notes: Notes) -> Iterator[tuple[int, int, bytes]]:
    """(property, type, first value) of a MAPI property list (MS-OXTNEF section 2.1.3.4)."""
    count, position = _u32(data, 0), 4
    for number in range(count):
        if number % 1024 == 1023:
            notes.check_time()
        tag = _u32(data, position)
        kind, prop = tag & 0xFFFF, tag >> 16
        position += 4
        if prop >= 0x8000:
            position = _after_name(data, position + _IID_SIZE)
        multiple = bool(kind & 0x1000)
        kind &= 0x0FFF
        values = 1
        if multiple or kind in _VARIABLE:
            values, position = _u32(data, position), position + 4
        for index in range(values):
            if kind in _VARIABLE:
                size, position = _u32(data, position), position + 4
                step = (size + 3) // 4 * 4
            else:
                size = step = _FIXED.get(kind, 0)
            if step == 0 and kind not in _VARIABLE:
                raise _BrokenError
            if position + size > len(data):
                raise _BrokenError
            if index == 0:
                yield prop, kind, data[position : position + size]
            position += step


def _after_name(data: bytes, position: int) -> int:
    if _u32(data, position) == 0:
        return position + 8
    size = _u32(data, position + 4)
    return position + 8 + (size + 3) // 4 * 4


def _u32(data: bytes, position: int) -> int:
    if position + 4 > len(data):
        raise _BrokenError
    value: int = struct.unpack_from("<I", data, position)[0]
    return value
