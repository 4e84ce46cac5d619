"""When to try again: exponential backoff with full jitter."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """`initial_seconds` doubles at each failure up to `max_seconds`."""

    initial_seconds: float
    max_seconds: float

    def ceiling_seconds(self, failures: int) -> float:
        """The longest delay after `failures` (at least 1) failures in a row."""
        exponent = min(max(failures, 1) - 1, 62)  # 2**62 s is past every maximum; larger only overflows
        return float(min(self.max_seconds, self.initial_seconds * 2**exponent))

    def delay_seconds(self, failures: int, fraction: float) -> float:
        """Full jitter: `fraction` (0 to 1, drawn by the caller) of the ceiling.

        Never under a tenth of the initial delay, so that an unlucky draw is no busy loop.
        Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
        """
        return max(self.initial_seconds / 10, fraction * self.ceiling_seconds(failures))
