"""ISO-2022-JP as mail really carries it.

Python's iso2022_jp codecs refuse what Japanese mailers send all day: the NEC and IBM extensions (circled digits,
the "(株)" sign), half-width katakana and stray 8-bit bytes. So the escape sequences are read here, and the
double-byte runs go through cp932, as Windows (code page 50220) and browsers do.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\x1b(\([BJIH]|\$[@B]|\$\([@BDOPQ]|&@\x1b\$B|\.[AF]|N)|([\x0e\x0f])")
_TWO_BYTES = frozenset((b"$@", b"$B", b"$(@", b"$(B", b"$(O", b"$(Q", b"&@\x1b$B"))
_EUC_PAIR = re.compile(rb"[\xa1-\xfe][\xa1-\xfe]|\x8f[\xa1-\xfe][\xa1-\xfe]|\x8e[\xa1-\xdf]|[\x00-\x7f]+|.", re.DOTALL)
_REPLACEMENT = "\ufffd"


def decode_jis(data: bytes) -> str:
    """The text of ISO-2022-JP bytes; what has no meaning becomes U+FFFD. Linear in the length."""
    pieces: list[str] = []
    mode = b"(B"
    position = 0
    for escape in _ESCAPE.finditer(data):
        pieces.append(_run(data[position : escape.start()], mode))
        position = escape.end()
        if escape[2]:
            mode = b"(I" if escape[2] == b"\x0e" else b"(B"
        elif escape[1] in _TWO_BYTES or escape[1] in (b"(I", b"$(D"):
            mode = escape[1]
        else:
            mode = b"(B"
    pieces.append(_run(data[position:], mode))
    return "".join(pieces)


def _run(data: bytes, mode: bytes) -> str:
    if not data:
        return ""
    if mode == b"(B":
        return data.decode("cp932", "replace")
    if mode == b"(I":
        return bytes(byte | 0x80 if 0x21 <= byte <= 0x5F else byte for byte in data).decode("cp932", "replace")
    # RFC 1468: a line ends in ASCII. Text that forgot to switch back is ASCII from the line break on.
    head, newline, tail = data.partition(b"\n")
    return _pairs(head, mode == b"$(D") + (newline + tail).decode("cp932", "replace")


def _pairs(data: bytes, supplementary: bool) -> str:
    pieces: list[str] = []
    converted = bytearray()
    position = 0
    while position < len(data):
        first = data[position] & 0x7F
        second = data[position + 1] & 0x7F if position + 1 < len(data) else 0
        if 0x21 <= first <= 0x7E and 0x21 <= second <= 0x7E:
            if supplementary:
                pieces.append(bytes((0x8F, first | 0x80, second | 0x80)).decode("euc_jp", "replace"))
            else:
                converted += _shifted(first, second)
            position += 2
        else:
            converted += data[position : position + 1] if first <= 0x20 else b"\xff"
            position += 1
    pieces.append(converted.decode("cp932", "replace"))
    return "".join(pieces)


def _shifted(first: int, second: int) -> bytes:
    """A JIS X 0208 pair as Shift_JIS."""
    lead = (first - 0x21) // 2 + (0x81 if first <= 0x5E else 0xC1)
    if first % 2:
        return bytes((lead, second + (0x1F if second <= 0x5F else 0x20)))
    return bytes((lead, second + 0x7E))


def decode_euc_jp(data: bytes) -> str:
    """EUC-JP with the NEC and IBM extensions (CP51932): Python's codec first, cp932 for the pairs that it lacks."""
    try:
        return data.decode("euc_jp")
    except UnicodeDecodeError:
        return "".join(_extended(match[0]) for match in _EUC_PAIR.finditer(data))


def _extended(piece: bytes) -> str:
    try:
        return piece.decode("euc_jp")
    except UnicodeDecodeError:
        if len(piece) == 2 and piece[0] != 0x8E:
            return _shifted(piece[0] & 0x7F, piece[1] & 0x7F).decode("cp932", "replace")
        return _REPLACEMENT
