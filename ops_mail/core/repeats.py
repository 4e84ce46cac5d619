"""A failure that repeats a thousand times is ten lines, not a thousand."""

from __future__ import annotations

import re

_KEYS_LIMIT = 64
_NUMBERS = re.compile(r"\d+(?:[ .+]+\d+)*")


class RepeatLimiter:
    """Admits the 1st, 2nd, 4th, 8th … time that the same key comes in a row of failures."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def admit(self, key: str) -> int:
        """How often `key` has come by now when this time is worth a line, else 0."""
        if key not in self._seen and len(self._seen) >= _KEYS_LIMIT:
            self._seen.clear()  # texts that never repeat must not pile up
        count = self._seen[key] = self._seen.get(key, 0) + 1
        return count if count & (count - 1) == 0 else 0

    def admit_error(self, text: str) -> int:
        """As `admit`, for an error's text: the same one with other numbers in it is the same one.

        Dovecot ends its NO with two timings, or three, `(0.001 + 0.000 secs)`; others name a port, a tag or a process.
        """
        return self.admit(_NUMBERS.sub("#", text))

    def forget(self) -> None:
        """The row of failures is over; the next one is told from the start."""
        self._seen.clear()
