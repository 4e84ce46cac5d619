"""Content-Type and Content-Disposition: the value and its parameters (RFC 2045, 2183, 2231), as written in practice."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ops_mail.mime.charsets import decode_text
from ops_mail.mime.notes import Notes
from ops_mail.mime.words import decode_lines

_VALUE = re.compile(rb"[ \t\r\n]*+\"?([^;,\"\s(]*+)[^;]*+")
_NAME = re.compile(rb"[;\s,]*+([^\s=;\"]++)[ \t\r\n]*+=[ \t\r\n]*+")
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*+)"?', re.DOTALL)
_UNQUOTED = re.compile(rb"[^;]*+")
_SKIP = re.compile(rb"[^;]*+;?")
_AFTER_QUOTE = re.compile(rb'\s*+(?:;|\Z|\(|[^\s=;"]{1,80}=)')
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_QUOTED_PAIR = re.compile(rb"\\(.)", re.DOTALL)
_WINDOWS_PATH = re.compile(rb"(?:[A-Za-z]:)?\\")
_MAX_PARAMETERS = 1000


@dataclass(frozen=True, slots=True)
class Parameters:
    """A header value in front of its parameters, lower case, and the parameters as sent (names lower case)."""

    value: str
    raw: dict[str, bytes] = field(default_factory=dict)

    def plain(self, name: str) -> str | None:
        """A parameter that is a token (charset, format, type …)."""
        value = self._bytes(name)
        return None if value is None else value.decode("latin_1").strip().strip("'\"") or None

    def boundary(self) -> bytes | None:
        """The boundary, as bytes: 8-bit ones exist."""
        return self._bytes("boundary") or None

    def _bytes(self, name: str) -> bytes | None:
        value = self.raw.get(name)
        if value is not None:
            return value
        extended, joined = _joined(self.raw, name)
        return _extended(joined)[1] if joined is not None and extended else joined

    def text(self, name: str, notes: Notes) -> str | None:
        """A parameter for people (file names): RFC 2231 first, then plain with RFC 2047 words or raw 8-bit bytes."""
        extended, value = _joined(self.raw, name)
        plain = self.raw.get(name)
        if value is not None and extended:
            charset, data = _extended(value)
            text = decode_text(data, charset.decode("latin_1").strip() or None, notes, hint=notes.hint)
            if "\ufffd" not in text or plain is None:
                return _decoded_again(text, notes)
        if plain is None and not extended:
            plain = value
        return None if plain is None else decode_lines(plain, notes)


def _extended(value: bytes) -> tuple[bytes, bytes]:
    """charset'language'percent-encoded → (charset, bytes); the first two are forgotten at times."""
    charset, _, rest = value.partition(b"'")
    _language, quote, encoded = rest.partition(b"'")
    if not quote:
        charset, encoded = b"", value
    return charset, _PERCENT.sub(lambda match: bytes((int(match[1], 16),)), encoded)


def _decoded_again(text: str, notes: Notes) -> str:
    """Some mailers put encoded words into the pieces of a split RFC 2231 parameter."""
    return decode_lines(text.encode("utf_8"), notes) if "=?" in text else text


def _joined(raw: dict[str, bytes], name: str) -> tuple[bool, bytes | None]:
    """The extended or split parameter `name*`, `name*0`, `name*0*` … put together; (is extended, value)."""
    whole = raw.get(name + "*")
    if whole is not None:
        return True, whole
    sections: dict[int, tuple[bool, bytes]] = {}
    prefix = name + "*"
    for key, value in raw.items():
        if key.startswith(prefix):
            digits = key[len(prefix) :].rstrip("*")
            if digits.isdecimal() and digits.isascii() and len(digits) < 6:
                sections.setdefault(int(digits), (key.endswith("*"), value))
    if not sections:
        return False, None
    extended = any(starred for starred, _ in sections.values())
    if not extended:
        return False, b"".join(sections[number][1] for number in sorted(sections))
    # Sections without a star hold no percent encoding: protect their percent signs.
    return True, b"".join(
        value if starred else value.replace(b"%", b"%25") for _, (starred, value) in sorted(sections.items())
    )


def read_parameters(header: bytes) -> Parameters:
    """Value and parameters of a header. Never raises; linear; at most 1,000 parameters are kept."""
    start = _VALUE.match(header)
    value = start[1].decode("latin_1").lower() if start else ""
    position = start.end() if start else 0
    raw: dict[str, bytes] = {}
    while position < len(header) and len(raw) < _MAX_PARAMETERS:
        name = _NAME.match(header, position)
        if name is None:
            skipped = _SKIP.match(header, position)
            position = skipped.end() if skipped and skipped.end() > position else len(header)
            continue
        content, position = _parameter_value(header, name.end())
        raw.setdefault(name[1].decode("latin_1").lower(), content)
    return Parameters(value, raw)


def _parameter_value(header: bytes, position: int) -> tuple[bytes, int]:
    quoted = _QUOTED.match(header, position)
    if quoted is not None:
        if _AFTER_QUOTE.match(header, quoted.end()):
            return _unquoted(quoted[1]), quoted.end()
        # Quotes inside the quotes: the value goes to the last quote before the semicolon.
        rest = _UNQUOTED.match(header, position)
        text = rest[0].strip() if rest else b""
        return text[1:].removesuffix(b'"'), rest.end() if rest else len(header)
    bare = _UNQUOTED.match(header, position)
    text = bare[0].strip() if bare else b""
    if text.endswith(b")") and b" (" in text:  # charset=us-ascii (plain text)
        text = text[: text.rfind(b" (")].rstrip()
    return text, bare.end() if bare else len(header)


def _unquoted(text: bytes) -> bytes:
    if b"\\" not in text:
        return text
    # A backslash quotes the next character, but senders on Windows put whole paths in unquoted.
    return text if _WINDOWS_PATH.match(text) else _QUOTED_PAIR.sub(rb"\1", text)
