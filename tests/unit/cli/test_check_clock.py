"""How far apart two clocks are, from one question and its answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ops_mail.cli.check.clock import Skew, between, skew_row
from ops_mail.cli.check.rows import Verdict

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_a_clock_was_read_somewhere_between_question_and_answer() -> None:
    assert between(NOW, NOW + 11 * SECOND, NOW + 2 * SECOND) == Skew(10.0, 1.0)
    assert between(NOW, NOW - 9 * SECOND, NOW + 2 * SECOND) == Skew(-10.0, 1.0)


def test_a_clock_that_tells_whole_seconds_is_that_uncertain() -> None:
    assert between(NOW, NOW, NOW, resolution_seconds=1.0) == Skew(0.5, 0.5)
    assert between(NOW, NOW, NOW, resolution_seconds=1.0).least_seconds == 0


@pytest.mark.parametrize(
    ("seconds", "lease", "verdict", "detail"),
    [
        (0.01, 30.0, Verdict.OK, "the clock and this machine's are at most 0.1 s apart"),
        (-4.9, 30.0, Verdict.OK, "the clock and this machine's are at most 4.9 s apart"),
        (6.0, 30.0, Verdict.WARN, "the clock is 6.0 s ahead of this machine's"),
        (-6.0, 30.0, Verdict.WARN, "the clock is 6.0 s behind this machine's"),
        (
            31.0,
            30.0,
            Verdict.FAIL,
            "the clock is 31.0 s ahead of this machine's, more than OPS_MAIL_LEASE_SECONDS (30)",
        ),
        (3.0, 2.0, Verdict.FAIL, "the clock is 3.0 s ahead of this machine's, more than OPS_MAIL_LEASE_SECONDS (2)"),
        (3600.0, None, Verdict.WARN, "the clock is 3600.0 s ahead of this machine's"),
    ],
)
def test_five_seconds_are_a_warning_and_a_lease_is_a_failure(
    seconds: float, lease: float | None, verdict: Verdict, detail: str
) -> None:
    row = skew_row("database", "clock", "the clock", Skew(seconds, 0.0), lease)
    assert (row.verdict, row.detail) == (verdict, detail)
    assert bool(row.advice) is (verdict is not Verdict.OK)


def test_what_is_uncertain_is_not_held_against_a_clock() -> None:
    assert skew_row("database", "clock", "the clock", Skew(31.0, 27.0), 30.0).verdict is Verdict.OK
