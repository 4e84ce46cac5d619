"""The numbers behind the arrivals chart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ops_mail.store.overview_model import Hour, Tally
from ops_mail.web.chart import HEIGHT, chart_of, nice_ceiling

START = datetime(2026, 11, 28, 18, tzinfo=UTC)


def hours(*counts: int) -> list[Hour]:
    return [Hour(START + timedelta(hours=place), Tally(count)) for place, count in enumerate(counts)]


@pytest.mark.parametrize(
    ("peak", "top"),
    [(0, 2), (1, 2), (4, 4), (5, 6), (7, 8), (9, 10), (11, 20), (21, 40), (61, 80), (81, 100), (101, 200)],
)
def test_the_scale_ends_at_a_number_that_can_be_halved(peak: int, top: int) -> None:
    assert nice_ceiling(peak) == top
    assert top % 2 == 0


def test_bars_are_as_high_as_their_share() -> None:
    chart = chart_of(hours(0, 10, 40))
    assert [bar.height for bar in chart.bars] == [0, 25, 100]
    assert [bar.y for bar in chart.bars] == [100, 75, 0]
    assert (chart.top, chart.total, chart.peak, chart.more) == (40, 50, 40, False)
    assert all(0 <= bar.x < chart.width for bar in chart.bars)


def test_one_mail_beside_thousands_is_still_seen() -> None:
    few, many = chart_of(hours(1, 50_000)).bars
    assert 0 < few.height < 3
    assert many.height <= HEIGHT


def test_a_quiet_day_is_an_empty_chart() -> None:
    chart = chart_of(hours(*[0] * 24))
    assert (chart.total, chart.peak, chart.top) == (0, 0, 2)
    assert all(bar.height == 0 for bar in chart.bars)


def test_hours_that_were_not_counted_to_the_end_are_told() -> None:
    assert chart_of([Hour(START, Tally(50_000, at_least=True))]).more is True
