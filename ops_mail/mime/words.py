"""RFC 2047 encoded words and raw 8-bit text in header values, read as leniently as mail clients do."""

from __future__ import annotations

import binascii
import re

from ops_mail.mime.charsets import decode_text, without_nul
from ops_mail.mime.defects import Defect
from ops_mail.mime.detect import is_utf8
from ops_mail.mime.notes import Notes

# Spaces around the charset, empty charset and language suffix (RFC 2231 section 5) all occur.
_START = re.compile(rb"=\?([^?\x00-\x1f]{0,70})\?([bBqQ])\?")
_FROM_URL = bytes.maketrans(b"-_", b"+/")
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/=]+")
_MORE_TEXT = re.compile(rb"[0-9A-F]{2}[^?]{0,60}\?=")
_CUT_CHARACTER = re.compile(rb"([\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2}) +(?=[\x80-\xbf])")
_SEVEN_BIT = frozenset(("utf_7", "hz"))
_SHIFTED = re.compile(rb"\+[A-Za-z0-9+/]{2,}-|~\{[!-~]{2,}~\}")
_CONTROL_BREAKS = re.compile(r"[\r\n]+[ \t]*")


def decode_value(value: bytes, notes: Notes) -> str:
    """The text of an unstructured header value. Never raises; holds no line break, whatever an encoded word holds."""
    text = decode_lines(value, notes)
    return _CONTROL_BREAKS.sub(" ", text) if "\n" in text or "\r" in text else text


def decode_lines(value: bytes, notes: Notes) -> str:
    """The same with line breaks from encoded words as they are."""
    text = _decode_words(value, notes) if b"=?" in value else _raw(value, notes)
    return without_nul(text, notes) if "\0" in text else text


def _decode_words(value: bytes, notes: Notes) -> str:
    pieces: list[str] = []
    run = _Run()
    position = 0
    starts = list(_START.finditer(value))
    for index, start in enumerate(starts):
        if index % 256 == 255:
            notes.check_time()
        limit = starts[index + 1].start() if index + 1 < len(starts) else len(value)
        text_end, word_end = _word_end(value, start.end(), limit, start[2] in b"qQ")
        between = value[position : start.start()]
        # Space between two encoded words is not text (RFC 2047 section 6.2), any other is.
        if not run or between.strip(b" \t\r\n"):
            pieces += (run.decoded(notes), _raw(between, notes))
            run = _Run()
        elif not run.takes(start[1]):
            pieces.append(run.decoded(notes))
            run = _Run()
        if word_end < text_end + 2:
            notes.add(Defect.BAD_ENCODED_WORD)
        run.append(start[1], start[2] in b"bB", value[start.end() : text_end])
        position = word_end
    pieces += (run.decoded(notes), _raw(value[position:], notes))
    return "".join(pieces)


def _word_end(value: bytes, begin: int, limit: int, quoted: bool) -> tuple[int, int]:
    """(end of the encoded text, end of the word). They are less than two apart when the word is not closed."""
    end = value.find(b"?=", begin, limit)
    # An unencoded question mark before an encoded byte ("really?=20yes?=") is not the end.
    while quoted and end >= 0 and _MORE_TEXT.match(value, end + 2, limit):
        end = value.find(b"?=", end + 2, limit)
    if end < 0:
        return (limit - 1 if value[begin:limit].endswith(b"?") else limit), limit
    return end, end + 2


class _Run:
    """Adjacent words of one charset: their bytes are joined first, since a character may be split across two."""

    __slots__ = ("_data", "_label", "_open")

    def __init__(self) -> None:
        self._label: bytes | None = None
        self._data: list[bytes] = []
        self._open = b""  # base64 text whose last quantum was cut by the end of its word

    def __bool__(self) -> bool:
        return self._label is not None

    def takes(self, label: bytes) -> bool:
        return self._label is None or self._label.strip().lower() == label.strip().lower()

    def append(self, label: bytes, is_base64: bool, text: bytes) -> None:
        self._label = label
        if is_base64:
            if b"-" in text or b"_" in text:  # the alphabet for URLs (RFC 4648 section 5)
                text = text.translate(_FROM_URL)
            text = self._open + _NOT_BASE64.sub(b"", text)
            self._open = b""
            if b"=" not in text and len(text) % 4:
                whole = len(text) // 4 * 4
                self._open, text = text[whole:], text[:whole]
            self._data.append(_from_base64(text))
        else:
            self._close()
            self._data.append(binascii.a2b_qp(text.strip(b"\r\n"), header=True))

    def _close(self) -> None:
        if self._open:
            self._data.append(_from_base64(self._open))
            self._open = b""

    def decoded(self, notes: Notes) -> str:
        if self._label is None:
            return ""
        if self._open:
            notes.add(Defect.BAD_ENCODED_WORD)
        self._close()
        label = self._label.strip().decode("latin_1") or None
        return decode_text(b"".join(self._data), label, notes, hint=notes.hint)


def _from_base64(text: bytes) -> bytes:
    # Some encoders pad within a word: each padded quantum ends one piece.
    return b"".join(_padded(piece) for piece in text.split(b"=") if piece)


def _padded(piece: bytes) -> bytes:
    whole = piece[:-1] if len(piece) % 4 == 1 else piece
    return binascii.a2b_base64(whole + b"=" * (-len(whole) % 4))


def _raw(value: bytes, notes: Notes) -> str:
    if value.isascii() and b"\x1b" not in value:
        if notes.hint in _SEVEN_BIT and _SHIFTED.search(value):  # the body's 7-bit charset, used in the header as it is
            return decode_text(value, notes.hint, notes)
        return value.decode("ascii")
    if b" " in value and not is_utf8(value):
        # A line was folded in the middle of a character.
        joined = _CUT_CHARACTER.sub(rb"\1", value)
        value = joined if is_utf8(joined) else value
    text = decode_text(value, None, notes, hint=notes.hint)
    if not value.isascii():
        try:
            value.decode("utf_8")
        except UnicodeDecodeError:
            notes.add(Defect.RAW_HEADER)
    return text
