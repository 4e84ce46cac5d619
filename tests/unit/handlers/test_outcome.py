from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_mail.core.claim_size import MAX_AHEAD, Average, claim_size
from ops_mail.core.handler_order import Head, next_in_order
from ops_mail.core.mail import MessageStatus
from ops_mail.core.outcome import AttemptOutcome, EndKind, Verdict, decide, retry_delay_seconds
from ops_mail.core.webhook_outcome import asks_for_a_pause, retry_after_seconds, webhook_end

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


def test_the_wait_doubles_from_two_seconds_up_to_five_minutes() -> None:
    assert [retry_delay_seconds(n) for n in (1, 2, 3, 8, 9, 10, 10_000)] == [2, 4, 8, 256, 300, 300, 300]


@pytest.mark.parametrize(
    ("kind", "attempts", "expected"),
    [
        (EndKind.SUCCEEDED, 1, Verdict(AttemptOutcome.DONE, MessageStatus.DONE)),
        (EndKind.SUCCEEDED, 5, Verdict(AttemptOutcome.DONE, MessageStatus.DONE)),
        (EndKind.DISCARDED, 5, Verdict(AttemptOutcome.SKIPPED, MessageStatus.SKIPPED)),
        (EndKind.FAILED, 1, Verdict(AttemptOutcome.RETRY, MessageStatus.RETRY, 2)),
        (EndKind.FAILED, 4, Verdict(AttemptOutcome.RETRY, MessageStatus.RETRY, 16)),
        (EndKind.FAILED, 5, Verdict(AttemptOutcome.DEAD, MessageStatus.DEAD)),
        (EndKind.PERMANENT, 1, Verdict(AttemptOutcome.DEAD, MessageStatus.DEAD)),
        (EndKind.TIMED_OUT, 1, Verdict(AttemptOutcome.TIMED_OUT, MessageStatus.RETRY, 2)),
        (EndKind.TIMED_OUT, 5, Verdict(AttemptOutcome.TIMED_OUT, MessageStatus.DEAD)),
        (EndKind.INTERRUPTED, 5, Verdict(AttemptOutcome.ABANDONED, MessageStatus.RETRY, forgiven=True)),
        (EndKind.LOST, 1, Verdict(AttemptOutcome.ABANDONED, MessageStatus.RETRY, 2, crashed=True)),
        (EndKind.LOST, 5, Verdict(AttemptOutcome.ABANDONED, MessageStatus.DEAD, crashed=True)),
    ],
)
def test_each_ending_has_its_verdict(kind: EndKind, attempts: int, expected: Verdict) -> None:
    assert decide(kind, attempts, 5) == expected


@given(st.sampled_from(EndKind), st.integers(1, 2000), st.integers(1, 1000), st.none() | st.floats(0, 1e9))
def test_no_mail_is_tried_for_ever_and_no_wait_is_longer_than_an_hour(
    kind: EndKind, attempts: int, limit: int, asked: float | None
) -> None:
    verdict = decide(kind, attempts, limit, None if kind is EndKind.INTERRUPTED else asked)
    assert 0 <= verdict.delay_seconds <= 3600
    if attempts >= limit and kind is not EndKind.INTERRUPTED:
        assert verdict.status in (MessageStatus.DONE, MessageStatus.SKIPPED, MessageStatus.DEAD)


def test_a_server_may_ask_for_more_patience_but_not_for_less() -> None:
    assert decide(EndKind.FAILED, 1, 5, 60).delay_seconds == 60
    assert decide(EndKind.FAILED, 4, 5, 1).delay_seconds == 16


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, EndKind.SUCCEEDED), (204, EndKind.SUCCEEDED), (299, EndKind.SUCCEEDED),
        (301, EndKind.FAILED), (307, EndKind.FAILED),
        (400, EndKind.PERMANENT), (401, EndKind.PERMANENT), (404, EndKind.PERMANENT), (410, EndKind.PERMANENT),
        (408, EndKind.FAILED), (425, EndKind.FAILED), (429, EndKind.FAILED),
        (500, EndKind.FAILED), (503, EndKind.FAILED), (599, EndKind.FAILED),
    ],
)  # fmt: skip
def test_a_webhooks_answer_is_read_by_its_status(status: int, kind: EndKind) -> None:
    assert webhook_end(status) is kind


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None), ("120", 120), (" 7 ", 7), ("-5", None), ("soon", None), ("", None), ("9" * 40, None),
        ("Mon, 05 Jan 2026 10:01:30 GMT", 90), ("Mon, 05 Jan 2026 09:00:00 GMT", 0), ("Mon, 99 Foo 2026", None),
        ("1e309", None), ("Fri, 31 Dec 99999999999999999999 23:59:59 GMT", None),
        ("Mon, 05 Jan 2026 10:01:30 +99999999999999999999", None),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOW) == seconds


def test_only_an_overloaded_receiver_stops_the_other_mails_too() -> None:
    assert asks_for_a_pause(429, 5)
    assert asks_for_a_pause(503, 5)
    assert not asks_for_a_pause(503, None)
    assert not asks_for_a_pause(500, 5)


def head(uid: int, *, due: bool, uid_validity: int = 1) -> Head:
    return Head(uid, uid_validity, uid, due)


def test_in_order_only_the_first_unfinished_mail_is_next() -> None:
    assert next_in_order([]) is None
    assert next_in_order([head(7, due=True), head(5, due=True)]) == head(5, due=True)
    assert next_in_order([head(5, due=False), head(6, due=True)]) is None, "a dead or waiting mail blocks"


def test_an_older_numbering_comes_first() -> None:
    old, retired = head(90, due=True, uid_validity=1), head(99, due=True, uid_validity=-3)
    assert next_in_order([head(1, due=True, uid_validity=2), old]) == old
    assert next_in_order([old, retired]) == retired


def test_a_slow_handler_takes_what_it_can_start_and_a_fast_one_keeps_a_stock() -> None:
    assert claim_size(free=4, concurrency=4, waiting=0, average_seconds=None) == 4
    assert claim_size(free=1, concurrency=4, waiting=0, average_seconds=30) == 1
    assert claim_size(free=0, concurrency=4, waiting=0, average_seconds=30) == 0
    assert claim_size(free=4, concurrency=4, waiting=0, average_seconds=0.002) == 4 + MAX_AHEAD
    assert claim_size(free=0, concurrency=4, waiting=MAX_AHEAD, average_seconds=0.002) == 0


def test_the_average_follows() -> None:
    assert Average().value is None
    average = Average()
    for _ in range(30):
        average.add(1.0)
    for _ in range(30):
        average.add(0.0)
    assert average.value is not None
    assert average.value < 0.01
