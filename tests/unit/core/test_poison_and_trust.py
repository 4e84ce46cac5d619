"""Memories of trouble: mails that break sessions, servers that keep pushes to themselves."""

from __future__ import annotations

from ops_mail.core.poison import FetchPlan, FetchRecord
from ops_mail.core.trust import IdleTrust
from ops_mail.errors import Failure


def test_a_mail_that_broke_its_batch_is_fetched_alone_next() -> None:
    assert FetchRecord().plan is FetchPlan.TOGETHER
    assert FetchRecord().after(Failure.LOST, FetchPlan.TOGETHER).plan is FetchPlan.ALONE


def test_a_mail_that_the_server_refuses_thrice_gives_its_header_and_then_nothing() -> None:
    record = FetchRecord().after(Failure.PROTOCOL, FetchPlan.TOGETHER)
    plans = []
    for _ in range(6):
        plans.append(record.plan)
        record = record.after(Failure.PROTOCOL, record.plan)
    assert plans == [FetchPlan.ALONE] * 3 + [FetchPlan.HEADER_ONLY] * 3
    assert record.plan is FetchPlan.GIVE_UP


def test_a_broken_line_earns_a_mail_more_patience_than_a_refusal() -> None:
    record = FetchRecord().after(Failure.LOST, FetchPlan.TOGETHER)
    alone = 0
    while record.plan is FetchPlan.ALONE:
        record = record.after(Failure.TIMEOUT, record.plan)
        alone += 1
    assert alone == 5


def test_idle_is_distrusted_after_three_misses_in_a_row_and_trusted_after_one_push() -> None:
    trust = IdleTrust()
    for _ in range(2):
        trust = trust.after_wait(pushed=False, found=1)
    assert trust.trusted
    trust = trust.after_wait(pushed=False, found=2)
    assert not trust.trusted
    assert trust.window_seconds(120, 60) == 60
    assert trust.window_seconds(30, 60) == 30
    trust = trust.after_wait(pushed=True, found=1)
    assert trust.trusted
    assert trust.window_seconds(120, 60) == 120


def test_a_quiet_wait_neither_builds_nor_destroys_trust() -> None:
    trust = IdleTrust(missed_in_a_row=2)
    assert trust.after_wait(pushed=False, found=0) == trust
