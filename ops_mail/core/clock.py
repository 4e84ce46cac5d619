"""The clocks, handed down from the composition root so that decisions stay pure and tests can turn them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Clock:
    """`now` is UTC for people and rows. `mono` never jumps but stands still while the machine is suspended, as the
    event loop's timers do; `boot` never jumps and counts suspension, so that a sync of an hour ago looks its age.
    """

    now: Callable[[], datetime]
    mono: Callable[[], float]
    boot: Callable[[], float]
