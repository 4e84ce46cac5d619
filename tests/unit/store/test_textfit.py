from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_mail.core.textfit import cut_bytes, fit, fit_json, fit_time, scrub

any_text = st.text(st.characters(exclude_categories=[]), max_size=80)


@given(any_text, st.integers(0, 60), st.integers(0, 120))
def test_what_fits_can_be_stored_and_what_changed_is_noted(text: str, max_chars: int, max_bytes: int) -> None:
    notes: list[str] = []
    short = fit(text, "c", notes, max_chars=max_chars, max_bytes=max_bytes)
    assert short is not None
    assert len(short) <= max_chars
    assert len(short.encode()) <= max_bytes
    assert scrub(text).startswith(short)
    assert ("truncated:c" in notes) == (short != scrub(text))
    assert ("surrogate:c" in notes) == (scrub(text) != text)


@given(any_text, st.integers(0, 100))
def test_no_more_is_cut_than_has_to_be(text: str, max_bytes: int) -> None:
    clean = scrub(text)
    short = cut_bytes(clean, max_bytes)
    if short != clean:
        assert len((short + clean[len(short)]).encode()) > max_bytes


@given(st.lists(st.tuples(any_text, any_text)), st.integers(2, 300))
def test_lists_are_cut_between_items(pairs: list[tuple[str, str]], max_bytes: int) -> None:
    notes: list[str] = []
    kept = fit_json([list(pair) for pair in pairs], "c", notes, max_bytes=max_bytes)
    assert kept == [[scrub(a), scrub(b)] for a, b in pairs][: len(kept)]
    assert len(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()) <= max_bytes
    assert ("truncated:c" in notes) == (len(kept) < len(pairs))


@pytest.mark.parametrize(
    ("moment", "stored"),
    [
        (datetime(1000, 1, 1, tzinfo=UTC), datetime(1000, 1, 1, tzinfo=UTC)),
        (datetime(999, 12, 31, tzinfo=UTC), None),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), None),
        (datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))), None),
        (datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))), datetime(2023, 12, 31, 23, tzinfo=UTC)),
    ],
)
def test_moments(moment: datetime, stored: datetime | None) -> None:
    notes: list[str] = []
    assert fit_time(moment, "c", notes) == stored
    assert notes == ([] if stored else ["out_of_range:c"])


def test_nothing_stays_nothing() -> None:
    notes: list[str] = []
    assert fit(None, "c", notes, max_chars=1) is None
    assert fit_time(None, "c", notes) is None
    assert notes == []
