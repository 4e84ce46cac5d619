"""The secrets this process has seen, and how they are taken out of a text that leaves it (promise P11)."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import OrderedDict
from threading import Lock
from urllib.parse import quote, quote_plus

MASK = "***"

# A value this short stands inside many innocent words; it is masked only where it stands alone.
_SHORT = 4
# The letters that so few bytes decide inside of base64 come together by chance.
_SHORT_INSIDE = 6
# Tokens rotate for ever: the oldest are forgotten, long after they have expired.
_REMEMBERED = 256


class Redactor:
    """Replaces every registered secret by `***`, also in the spellings it takes inside URLs, base64 and escapes.

    Thread-safe. Remembers the latest 256 values.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: OrderedDict[str, None] = OrderedDict()
        self._pattern: re.Pattern[str] | None = None
        self._longest = 0

    def register(self, value: str) -> None:
        """From now on `redact` masks `value`. An empty one is ignored."""
        if not value or value in self._values:
            return
        with self._lock:
            self._values[value] = None
            while len(self._values) > _REMEMBERED:
                self._values.popitem(last=False)
            spellings = _all_spellings(list(self._values))
            self._longest = len(spellings[0])
            self._pattern = re.compile("|".join(_as_pattern(spelling) for spelling in spellings))

    def redact(self, text: str) -> str:
        """`text` without any registered secret."""
        pattern = self._pattern
        return text if pattern is None else pattern.sub(MASK, text)

    def redact_head(self, text: str, limit: int) -> str:
        """The first `limit` characters of `redact(text)`, at the cost of so many, however long `text` is."""
        if len(text) <= limit + self._longest:
            return self.redact(text)[:limit]
        # A secret that the cut has halved is not recognised, so as much again goes away.
        redacted = self.redact(text[: limit + self._longest])
        return redacted[: max(0, min(limit, len(redacted) - self._longest))]

    def redact_tail(self, text: str, limit: int) -> str:
        """As `redact_head`, from the end."""
        if len(text) <= limit + self._longest:
            return self.redact(text)[-limit:]
        redacted = self.redact(text[-(limit + self._longest) :])
        return redacted[max(self._longest, len(redacted) - limit) :]


def _all_spellings(values: list[str]) -> list[str]:
    spellings = {spelling for value in values for spelling in _spellings(value)}
    # Longest first: a secret that begins like another one must not leave its tail behind.
    return sorted(spellings, key=lambda spelling: (-len(spelling), spelling))


def _as_pattern(spelling: str) -> str:
    escaped = re.escape(spelling)
    return escaped if len(spelling) >= _SHORT else rf"(?<!\w){escaped}(?!\w)"


def _spellings(value: str) -> set[str]:
    spellings = {
        value,
        quote(value, safe=""),  # inside a URL
        quote(value),
        quote_plus(value),
        repr(value)[1:-1],  # inside the repr of an exception's arguments
        value.replace("\\", "\\\\").replace('"', '\\"'),  # an IMAP quoted string, JSON
    }
    if len(value) >= _SHORT:
        spellings |= _in_base64(value.encode("utf-8", "surrogateescape"))
    return spellings


def _in_base64(value: bytes) -> set[str]:
    """In base64 alone, and as a part of something longer: SASL puts a password behind a user's name."""
    spellings = {b64encode(value).decode("ascii").rstrip("=")}
    if len(value) >= _SHORT_INSIDE:
        for before in range(3):  # bytes before it that share its first letters
            coded = b64encode(b"\0" * before + value).decode("ascii")
            first, end = -(-8 * before // 6), 8 * (before + len(value)) // 6
            spellings.add(coded[first:end])
    return spellings


_process = Redactor()


def register_secret(value: str) -> None:
    """Masks `value` in everything this process logs from now on. `Secret.reveal` does so by itself."""
    _process.register(value)


def redact(text: str) -> str:
    """`text` with every secret this process has seen replaced by `***`."""
    return _process.redact(text)


def redact_head(text: str, limit: int) -> str:
    """The first `limit` characters of `redact(text)`, at the cost of so many, however long `text` is."""
    return _process.redact_head(text, limit)


def redact_tail(text: str, limit: int) -> str:
    """The last `limit` characters, likewise."""
    return _process.redact_tail(text, limit)
