"""The bars of the arrivals chart: plain numbers in a box of 24 × 10 by 100 units, drawn by the template. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ops_mail.store.overview_model import Hour

STEP = 10.0
BAR = 7.0
HEIGHT = 100.0
_SMALLEST = 1.5  # one mail among thousands is still seen


@dataclass(frozen=True, slots=True)
class Bar:
    """One hour; `height` 0 means that nothing landed. `at_least`: there were more than `count`."""

    start: datetime
    count: int
    at_least: bool
    x: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """`top` is the number at the upper edge. `total` and `peak` are at least that when `more` is set."""

    bars: tuple[Bar, ...]
    width: float
    top: int
    total: int
    peak: int
    more: bool


def chart_of(hours: Sequence[Hour]) -> Chart:
    """The chart of these hours, the oldest first."""
    peak = max((hour.landed.count for hour in hours), default=0)
    top = nice_ceiling(peak)
    bars = []
    for place, hour in enumerate(hours):
        count = hour.landed.count
        height = max(_SMALLEST, HEIGHT * count / top) if count else 0.0
        x = place * STEP + (STEP - BAR) / 2
        bars.append(Bar(hour.start, count, hour.landed.at_least, x, round(HEIGHT - height, 2), round(height, 2)))
    return Chart(
        bars=tuple(bars),
        width=STEP * len(hours),
        top=top,
        total=sum(hour.landed.count for hour in hours),
        peak=peak,
        more=any(hour.landed.at_least for hour in hours),
    )


def nice_ceiling(peak: int) -> int:
    """The smallest of 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, … that is not below `peak`: its half is a whole number."""
    power = 1
    while True:
        for step in (2, 4, 6, 8, 10):
            if peak <= step * power:
                return step * power
        power *= 10
