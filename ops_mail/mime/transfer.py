"""Content-Transfer-Encoding undone (RFC 2045 section 6), and uuencode lines."""

from __future__ import annotations

import binascii
import re

from ops_mail.mime.defects import Defect
from ops_mail.mime.notes import Notes

_PADDING = re.compile(rb"=[\s=]*+")
_BASE64_AND_SPACE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/= \t\r\n\f\v"
_JUNK = re.compile(rb"[^A-Za-z0-9+/=]+")
_SPACE_AFTER_EQUALS = re.compile(rb"=[ \t]++(?=\r?\n|\Z)")
_IDENTITY = frozenset(("", "7bit", "8bit", "binary", "none", "7-bit", "8-bit", "8bits", "7bits", "plain", "identity"))
_UU_NAMES = frozenset(("x-uuencode", "uuencode", "x-uue", "uue"))
_BEGIN = re.compile(rb"(?:\A|(?<=\n))begin [0-7]{3,4} [^\n]*\n")


def is_identity(encoding: str) -> bool:
    """True when the encoding changes nothing."""
    return encoding in _IDENTITY


def read_encoding(header: bytes | None) -> str:
    """The encoding's name, lower case, free of comments and quotes."""
    if header is None:
        return ""
    text = header.decode("latin_1").strip().lower()
    if not text.isalnum():
        text = re.split(r"[\s;(,]", text.strip("\"'; "), maxsplit=1)[0].strip("\"'.")
    return text


def decode_transfer(data: bytes, encoding: str, notes: Notes) -> bytes:
    """The bytes behind the encoding; those of an unknown one as they stand. Never raises; linear."""
    if encoding in _IDENTITY:
        return data
    if encoding in ("quoted-printable", "quotedprintable", "qp", "quoted"):
        return decode_quoted_printable(data)
    if encoding in ("base64", "base-64", "b64"):
        return decode_base64(data, notes)
    if encoding in _UU_NAMES:
        begin = _BEGIN.search(data)
        return decode_uu(data[begin.end() :] if begin else data, notes)
    notes.add(Defect.UNKNOWN_ENCODING, encoding)
    return data


def decode_quoted_printable(data: bytes) -> bytes:
    """Quoted-printable; what is none stays as it stands. Linear."""
    # RFC 2045 section 6.7 rule 3: white space at the end of an encoded line was added on the way.
    if b" \n" in data or b" \r\n" in data or b"\t\n" in data or b"\t\r\n" in data or data.endswith((b" ", b"\t")):
        data = _SPACE_AFTER_EQUALS.sub(b"=", data)
    return binascii.a2b_qp(data)


def decode_base64(data: bytes, notes: Notes) -> bytes:
    """Base64 with whatever stands between: several padded pieces, foreign characters, a last quantum cut off."""
    if _is_text_after_all(data):
        notes.add(Defect.BAD_BASE64)
        return data
    inner_end = len(data.rstrip(b"= \t\r\n"))
    if data.find(b"=", 0, inner_end) < 0:
        if data.translate(None, _BASE64_AND_SPACE):
            notes.add(Defect.BAD_BASE64)
        return _quanta(data, notes)
    notes.add(Defect.BAD_BASE64)
    pieces: list[bytes] = []
    position = 0
    for padding in _PADDING.finditer(data, 0, inner_end):
        pieces.append(_quanta(data[position : padding.start()], notes))
        position = padding.end()
        if _is_prose(data[position : min(position + 200, inner_end)]):  # a footer that some list server appended
            return b"".join(pieces)
    pieces.append(_quanta(data[position:], notes))
    return b"".join(pieces)


def _is_text_after_all(data: bytes) -> bool:
    """The label lies: words with spaces between them, or one short word that cannot be base64 by its length."""
    words = data[:4096].split()
    if len(words) > 9:
        return data[:4096].count(b" ") > len(words) / 3 and sum(map(len, words)) < 20 * len(words)
    if len(words) != 1 or len(words[0]) > 200 or len(words[0]) % 4 != 1 or b"=" in words[0]:
        return False
    whole = words[0][:-1]
    return not whole.isalnum() or not binascii.a2b_base64(whole).isascii()


def _is_prose(sample: bytes) -> bool:
    return b" " in sample.strip() or bool(sample.translate(None, _BASE64_AND_SPACE))


def _quanta(data: bytes, notes: Notes) -> bytes:
    try:
        return binascii.a2b_base64(data)
    except binascii.Error:
        notes.add(Defect.BAD_BASE64)
    clean = _JUNK.sub(b"", data).rstrip(b"=")
    if len(clean) % 4 == 1:
        clean = clean[:-1]
    return binascii.a2b_base64(clean + b"=" * (-len(clean) % 4))


def decode_uu(data: bytes, notes: Notes) -> bytes:
    """The lines of a uuencoded file up to "end"; broken lines are left out (noted)."""
    pieces: list[bytes] = []
    for index, line in enumerate(data.splitlines()):
        if index % 4096 == 4095:
            notes.check_time()
        if line in (b"end", b"`", b" ", b""):
            if line == b"end":
                break
            continue
        try:
            pieces.append(binascii.a2b_uu(line))
        except binascii.Error:
            repaired = _repaired_uu(line)
            if repaired is None:
                notes.add(Defect.BAD_UUENCODE)
            else:
                pieces.append(repaired)
    return b"".join(pieces)


def _repaired_uu(line: bytes) -> bytes | None:
    """Encoders that pad or checksum each line: the length character says how much of the line counts."""
    count = ((line[0] - 32) & 63) * 4 + 5
    try:
        return binascii.a2b_uu(line[: count // 3])
    except binascii.Error:
        return None
