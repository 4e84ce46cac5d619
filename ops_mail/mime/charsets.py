"""Bytes and what their sender says about their charset → text."""

from __future__ import annotations

import codecs
import re

from ops_mail.mime.defects import Defect
from ops_mail.mime.detect import detect, is_utf8, utf8_is_certain
from ops_mail.mime.jis import decode_euc_jp, decode_jis
from ops_mail.mime.labels import ASCII, ISO_2022_JP, UTF_16, UTF_32, codec_for
from ops_mail.mime.notes import Notes

_SURROGATES = re.compile("[\ud800-\udfff]")
_MULTI_BYTE = frozenset(("gb18030", "big5hkscs", "cp949", "euc_jp", "cp932", "johab"))
_WHATWG_C1 = "ops_mail_c1"


def _as_c1(error: UnicodeError) -> tuple[str | bytes, int]:
    """Bytes that a Windows code page leaves open are C1 controls, as in the WHATWG tables."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(byte) if byte < 0xA0 else "\ufffd" for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_WHATWG_C1, _as_c1)


def decode_text(data: bytes, label: str | None, notes: Notes, *, hint: str | None = None) -> str:
    """The text of `data`, whose sender calls its charset `label` (None: says nothing). Never raises; no surrogates.

    A label that cannot be true, or that names no charset, is a defect, and the charset is a guess.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        return _decoded(data[3:], "utf_8", notes)
    codec = None if label is None else codec_for(label)
    if label is not None and codec is None and not data.isascii():
        notes.add(Defect.UNKNOWN_CHARSET, label)
    if codec is None:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")) and len(data) % 2 == 0:
            return _wide(data, UTF_16, notes)
        return _decoded(data, detect(data, hint), notes)
    if codec.startswith(("utf_16", "utf_32")):
        return _wide(data, codec, notes)
    if data.isascii() and codec not in ("utf_7", "hz", ISO_2022_JP, "iso2022_kr", "cp037", "cp500", "cp1140"):
        return _ascii(data, notes, label)
    if codec == ASCII:
        notes.add(Defect.WRONG_CHARSET, label)
        return _decoded(data, detect(data, hint), notes)
    return _as_labelled(data, codec, notes, label, hint)


def _ascii(data: bytes, notes: Notes, label: str | None) -> str:
    if b"\x1b$" in data and detect(data) == ISO_2022_JP:
        notes.add(Defect.WRONG_CHARSET, label)
        return decode_jis(data)
    return data.decode(ASCII)


def _as_labelled(data: bytes, codec: str, notes: Notes, label: str | None, hint: str | None) -> str:
    text = _strictly(data, codec)
    if text is not None:
        # UTF-8 under another name is the commonest lie. The other way round cannot be: UTF-8 proves itself.
        if codec not in ("utf_8", "utf_7", ISO_2022_JP) and utf8_is_certain(data):
            notes.add(Defect.WRONG_CHARSET, label)
            return _decoded(data, "utf_8", notes)
        return without_surrogates(text, notes) if codec == "utf_7" else text
    if codec == "utf_8":
        if _mostly_utf8(data):
            return _decoded(data, codec, notes)
    elif is_utf8(data):
        notes.add(Defect.WRONG_CHARSET, label)
        return _decoded(data, "utf_8", notes)
    if codec == "utf_8" or codec in _MULTI_BYTE:
        guess = detect(data, hint)
        if guess != codec and (codec == "utf_8" or guess in _MULTI_BYTE) and _strictly(data, guess) is not None:
            notes.add(Defect.WRONG_CHARSET, label)
            return _decoded(data, guess, notes)
    return _decoded(data, codec, notes)


def _mostly_utf8(data: bytes) -> bool:
    """Damaged UTF-8 rather than another charset: most of its non-ASCII is valid."""
    text = data[:262144].decode("utf_8", "ignore")
    valid = sum(len(char.encode()) for char in text[:65536] if char > "\x7f")
    wrong = data[:262144].decode("utf_8", "replace")[:65536].count("\ufffd")
    return valid >= 2 * wrong and valid > 0


def _strictly(data: bytes, codec: str) -> str | None:
    if codec == ISO_2022_JP:
        return decode_jis(data) if b"\x1b" in data else None if not data.isascii() else data.decode(ASCII)
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        return None
    except UnicodeError:  # the UTF-7, HZ and ISO-2022 codecs raise the plain one for some faults
        return None
    return text


def _decoded(data: bytes, codec: str, notes: Notes) -> str:
    if codec == ISO_2022_JP:
        text = decode_jis(data)
    elif codec == "euc_jp":
        text = decode_euc_jp(data)
    else:
        try:
            text = data.decode(codec, _WHATWG_C1 if codec.startswith("cp125") or codec == "cp874" else "replace")
        except UnicodeError:  # a codec that ignores the error handler for some faults
            text = data.decode("latin_1")
            notes.add(Defect.UNDECODABLE)
    if "\ufffd" in text:
        notes.add(Defect.UNDECODABLE)
    return without_surrogates(text, notes)


def without_surrogates(text: str, notes: Notes) -> str:
    """The same text, lone surrogates as U+FFFD: no database and no JSON reader takes them."""
    try:
        text.encode("utf_8")
    except UnicodeEncodeError:
        notes.add(Defect.UNDECODABLE)
        return _SURROGATES.sub("\ufffd", text)
    return text


def without_nul(text: str, notes: Notes) -> str:
    """The same text without NUL characters: they show as nothing, and end the text for programs written in C."""
    if "\0" in text:
        notes.add(Defect.NUL)
        return text.replace("\0", "")
    return text


def _wide(data: bytes, codec: str, notes: Notes) -> str:
    """UTF-16 and UTF-32: the byte order mark counts most, then the label, then where the zeros are."""
    if codec.startswith(UTF_32):
        if data.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
            codec = UTF_32
        elif codec == UTF_32:
            codec = "utf_32_be" if data[:2] == b"\x00\x00" else "utf_32_le"
        return _decoded(data, codec, notes)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _decoded(data, UTF_16, notes)
    sample = data[:4096]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if even == odd == 0 and (data.isascii() or (utf8_is_certain(data) and codec == UTF_16)):
        notes.add(Defect.WRONG_CHARSET, codec)
        return _decoded(data, "utf_8", notes)
    if even != odd:
        codec = "utf_16_be" if even > odd else "utf_16_le"
    elif codec == UTF_16:
        codec = "utf_16_be"  # RFC 2781 section 4.3
    return _decoded(data, codec, notes)
