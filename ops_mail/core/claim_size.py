"""How many mails a worker takes at a time."""

from __future__ import annotations

AHEAD_SECONDS = 0.25
MAX_AHEAD = 100


def claim_size(free: int, concurrency: int, waiting: int, average_seconds: float | None) -> int:
    """How many more mails to claim when `free` slots are idle and `waiting` claimed ones are not started yet.

    A handler that takes milliseconds would wait for the database most of its time, so its worker keeps a quarter of a
    second of work in stock. A slow one takes only what it can start at once, and other processes share the rest.
    """
    if average_seconds is None:
        return max(0, free - waiting)
    stock = min(MAX_AHEAD, int(concurrency * AHEAD_SECONDS / max(average_seconds, 0.0005)))
    if stock <= concurrency:
        return max(0, free - waiting)
    return 0 if 2 * waiting > stock else free + stock - waiting  # by half a stock at a time, not mail by mail


class Average:
    """A moving average that follows within about ten values."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: float | None = None

    @property
    def value(self) -> float | None:
        """None before the first value."""
        return self._value

    def add(self, value: float) -> None:
        """Count one more value."""
        self._value = value if self._value is None else self._value + (value - self._value) * 0.2
