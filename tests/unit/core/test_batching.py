"""Batches bounded before anything is fetched."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from ops_mail.core.batching import Batch, BatchKind, BatchLimits, plan_batches
from ops_mail.core.ids import Uid
from ops_mail.core.mail import Listed

DAY = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = BatchLimits(max_messages=3, max_bytes=100, large_bytes=50, max_message_bytes=1000)


def listing(*sizes: int) -> list[Listed]:
    return [Listed(Uid(number), size, DAY, ()) for number, size in enumerate(sizes, start=1)]


def shape(batches: list[Batch]) -> list[tuple[str, list[int]]]:
    return [(batch.kind.value, [mail.uid for mail in batch.mails]) for batch in batches]


def test_small_mails_share_a_batch_up_to_the_count_and_the_bytes() -> None:
    assert shape(list(plan_batches(listing(1, 1, 1, 1, 50, 50, 1), LIMITS))) == [
        ("small", [1, 2, 3]),
        ("small", [4, 5]),
        ("small", [6, 7]),
    ]


def test_a_large_and_an_oversize_mail_travel_alone_and_in_their_place() -> None:
    assert shape(list(plan_batches(listing(1, 51, 1, 1001, 1), LIMITS))) == [
        ("small", [1]),
        ("large", [2]),
        ("small", [3]),
        ("oversize", [4]),
        ("small", [5]),
    ]


def test_a_mail_of_exactly_the_limit_is_not_over_it() -> None:
    assert shape(list(plan_batches(listing(50, 1000), LIMITS))) == [("small", [1]), ("large", [2])]


def test_a_suspect_gets_a_batch_of_its_own() -> None:
    assert shape(list(plan_batches(listing(1, 1, 1), LIMITS, alone={Uid(2)}))) == [
        ("small", [1]),
        ("small", [2]),
        ("small", [3]),
    ]


@given(
    st.lists(st.integers(0, 1200), max_size=80),
    st.integers(1, 10),
    st.integers(1, 300),
    st.integers(1, 300),
    st.sets(st.integers(1, 80), max_size=10),
)
def test_every_uid_comes_once_in_order_and_no_batch_breaks_its_bounds(
    sizes: list[int], count: int, max_bytes: int, large: int, alone: set[int]
) -> None:
    limits = BatchLimits(count, max_bytes, large, 1000)
    suspects = {Uid(uid) for uid in alone}
    batches = list(plan_batches(listing(*sizes), limits, suspects))
    assert [mail.uid for batch in batches for mail in batch.mails] == list(range(1, len(sizes) + 1))
    for batch in batches:
        assert len(batch.mails) <= count
        if batch.kind is BatchKind.SMALL:
            assert sum(mail.size_bytes for mail in batch.mails) <= max_bytes
        else:
            assert len(batch.mails) == 1
        if suspects & {mail.uid for mail in batch.mails}:
            assert len(batch.mails) == 1
