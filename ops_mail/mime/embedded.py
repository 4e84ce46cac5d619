"""Files that stand in the text itself: uuencode and yEnc, as Usenet and old mailers send them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ops_mail.mime.defects import Defect
from ops_mail.mime.notes import Notes
from ops_mail.mime.transfer import decode_uu

_BEGIN = re.compile(
    rb"(?:\A|(?<=\n))(?:begin [0-7]{3,4} ([^\r\n]{1,255})|=ybegin [^\r\n]{0,300}?name=([^\r\n]{1,255}))\r?\n"
)
_UU_END = re.compile(rb"\n(?:[` ]?\r?\n)?end[ \t]*(?:\r?\n|\Z)")
_SHORT = 8192
_TYPES = {
    "txt": "text/plain", "log": "text/plain", "htm": "text/html", "html": "text/html", "csv": "text/csv",
    "ics": "text/calendar", "vcf": "text/vcard", "xml": "text/xml", "rtf": "application/rtf",
    "json": "application/json",
    "gif": "image/gif", "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "bmp": "image/bmp",
    "tif": "image/tiff", "tiff": "image/tiff", "svg": "image/svg+xml", "webp": "image/webp", "pdf": "application/pdf",
    "zip": "application/zip", "gz": "application/gzip", "7z": "application/x-7z-compressed", "eml": "message/rfc822",
    "doc": "application/msword", "xls": "application/vnd.ms-excel", "ppt": "application/vnd.ms-powerpoint",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "mp3": "audio/mpeg", "wav": "audio/wav", "mp4": "video/mp4", "avi": "video/x-msvideo", "mov": "video/quicktime",
}  # fmt: skip
_Y_END = re.compile(rb"\n=yend[^\r\n]*(?:\r?\n|\Z)")
_Y_PART = re.compile(rb"=ypart [^\r\n]*\r?\n")
_Y_TABLE = bytes((byte - 42) & 0xFF for byte in range(256))
_Y_ESCAPE = re.compile(rb"=(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class EmbeddedFile:
    """A file that stood in a text; `name` is as sent."""

    name: bytes
    content: bytes


def split_embedded(data: bytes, notes: Notes) -> tuple[bytes, list[EmbeddedFile]]:
    """The text without the files in it, and the files. Text that only mentions "begin" stays whole. Linear."""
    if b"begin " not in data:
        return data, []
    kept: list[bytes] = []
    files: list[EmbeddedFile] = []
    position = 0
    while (begin := _BEGIN.search(data, position)) is not None:
        notes.check_time()
        is_uu = begin[1] is not None
        if is_uu and not _looks_uuencoded(data, begin.end()):
            kept.append(data[position : begin.end()])
            position = begin.end()
            continue
        end = (_UU_END if is_uu else _Y_END).search(data, begin.end() - 1)
        if end is None:
            notes.add(Defect.BAD_UUENCODE)
            break
        if not notes.take_part():
            break
        body = data[begin.end() : end.start() + 1]
        content = decode_uu(body, notes) if is_uu else _y_decode(body)
        # A short uuencoded one stays in the text as well: most clients of today show it, and no guess loses text.
        is_short = is_uu and len(body) <= _SHORT
        kept.append(data[position : end.end() if is_short else begin.start()])
        files.append(EmbeddedFile((begin[1] or begin[2]).strip(), content))
        position = end.end()
    kept.append(data[position:])
    return b"".join(kept), files


def guess_type(name: str | None) -> str:
    """The media type that the extension of a file name stands for, the same on every machine."""
    extension = "" if name is None else name[-12:].rpartition(".")[2].lower()
    return _TYPES.get(extension, "application/octet-stream")


def _looks_uuencoded(data: bytes, position: int) -> bool:
    """The first line has the length that its first character says (or is the last line already)."""
    line = data[position : position + 100].split(b"\n", 1)[0].rstrip(b"\r")
    if line in (b"end", b"`", b""):
        return True
    if not all(0x20 <= byte <= 0x60 for byte in line):
        return False
    expected = (((line[0] - 32) & 63) + 2) // 3 * 4 + 1
    return expected - 3 <= len(line) <= expected + 3


def _y_decode(data: bytes) -> bytes:
    part = _Y_PART.match(data)
    body = data[part.end() :] if part else data
    body = body.replace(b"\r\n", b"").replace(b"\n", b"")
    unescaped = _Y_ESCAPE.sub(lambda match: bytes(((match[1][0] - 64) & 0xFF,)), body)
    return unescaped.translate(_Y_TABLE)
