"""Delays between attempts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ops_mail.core.backoff import BackoffPolicy

POLICY = BackoffPolicy(initial_seconds=1, max_seconds=300)


def test_the_ceiling_doubles_from_the_initial_delay_up_to_the_maximum() -> None:
    assert [POLICY.ceiling_seconds(n) for n in range(1, 12)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_full_jitter_spreads_over_the_whole_range_and_never_reaches_zero() -> None:
    assert POLICY.delay_seconds(5, 1.0) == 16
    assert POLICY.delay_seconds(5, 0.5) == 8
    assert POLICY.delay_seconds(5, 0.0) == 0.1


@given(st.integers(0, 10**9), st.floats(0, 1), st.floats(0.001, 60), st.floats(1, 3600))
def test_any_number_of_failures_gives_a_delay_within_bounds(
    failures: int, fraction: float, initial: float, extra: float
) -> None:
    policy = BackoffPolicy(initial, initial + extra)
    assert initial / 10 <= policy.delay_seconds(failures, fraction) <= initial + extra
