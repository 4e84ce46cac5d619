"""How much of one mail is looked at, whatever its sender wrote."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """Bounds for one mail. Passing one is a defect of the record, never an exception."""

    max_depth: int = 32
    max_parts: int = 1000
    max_seconds: float = 5.0
