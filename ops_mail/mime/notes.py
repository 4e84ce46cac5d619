"""What one run of the parser carries along: the defects so far and the time that is left."""

from __future__ import annotations

import time

from ops_mail.mime.defects import Defect
from ops_mail.mime.limits import ParseLimits

_MAX_DEFECTS = 64
_MAX_DETAIL = 60


class OutOfTimeError(Exception):
    """The time for this mail is up. Caught in the parser, which returns what is known."""


class Notes:
    """Collects defects, each once, in the order met; counts parts; tells when the time is up."""

    __slots__ = ("_deadline", "_defects", "expired", "hint", "limits", "parts")

    def __init__(self, limits: ParseLimits) -> None:
        self.limits = limits
        self.parts = 0
        self.hint: str | None = None  # the charset that the body declares: the likeliest one for raw headers
        self.expired = False  # something was cut short because the time was up
        self._deadline = time.monotonic() + limits.max_seconds
        self._defects: dict[str, None] = {}

    def add(self, defect: Defect, detail: str | None = None) -> None:
        """Note a defect; a second one of the same code and detail changes nothing."""
        if len(self._defects) < _MAX_DEFECTS:
            text = defect.value if detail is None else f"{defect.value}:{_printable(detail)}"
            self._defects[text] = None

    def add_last(self, defect: Defect) -> None:
        """Note a defect that ends the run; it is kept even when the list is full."""
        self._defects[defect.value] = None

    def check_time(self) -> None:
        """Raises OutOfTimeError when the time is up; cheap enough for every part and every hundredth step of a loop."""
        if time.monotonic() >= self._deadline:
            raise OutOfTimeError

    def take_part(self) -> bool:
        """Count one part; False when there are too many (noted)."""
        if self.parts >= self.limits.max_parts:
            self.add(Defect.PART_LIMIT)
            return False
        self.parts += 1
        return True

    def defects(self) -> tuple[str, ...]:
        return tuple(self._defects)


def _printable(detail: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in detail[:_MAX_DETAIL])
