"""How each mailbox is judged and what is said of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ops_mail.core.ids import FolderKey
from ops_mail.core.states import State
from ops_mail.core.status import MailboxStatus
from ops_mail.errors import Failure
from ops_mail.web.mailboxes import foreign_mailbox, own_mailbox
from ops_mail.web.snapshot import Level
from ops_mail.web.trouble import Trouble
from tests.browser.stage import idling, refused, standing_by
from tests.unit.web.facts import BOOT, CLOCK, LIMIT_SECONDS, NOW, cursor, row


def fresh() -> MailboxStatus:
    return MailboxStatus(FolderKey("orders", "INBOX"), idle_window_seconds=120, command_timeout_seconds=30)


@pytest.mark.parametrize(
    ("change", "level"),
    [
        ({}, Level.OK),
        ({"state": State.SYNCING, "backlog": 900}, Level.OK),
        ({"state": State.BACKOFF, "failures": 1, "last_error": "lost"}, Level.WARN),
        ({"last_sync_mono": BOOT - 271}, Level.BAD),
        ({"state": State.BACKOFF, "failures": 9, "last_error": "lost", "last_sync_mono": BOOT - 900}, Level.BAD),
        ({"state": State.DRAINING}, Level.OFF),
        ({"state": State.STOPPED}, Level.OFF),
    ],
)
def test_a_mailbox_of_this_process_has_the_level_of_its_work(change: dict[str, Any], level: Level) -> None:
    assert own_mailbox(idling("orders", CLOCK, **change), None, BOOT).level is level


def test_a_mailbox_that_has_just_begun_is_starting_and_not_bad() -> None:
    mailbox = fresh()
    assert own_mailbox(mailbox, None, BOOT).level is Level.BUSY
    mailbox.state = State.CONNECTING
    assert own_mailbox(mailbox, None, BOOT).level is Level.BUSY
    mailbox.failures, mailbox.last_error = 1, "no connection"
    assert own_mailbox(mailbox, None, BOOT).level is Level.BAD


def test_a_standby_shows_what_the_leader_reports() -> None:
    leader = row("support", state="backoff", failures=2, last_error="no connection to imap")
    view = own_mailbox(standing_by("support", CLOCK), leader, BOOT)
    assert (view.level, view.holder, view.held_here) == (Level.STANDBY, "mail-2:812:77aa01bc44de", False)
    assert (view.epoch, view.last_uid, view.backlog) == (9, 77, None)
    assert view.last_sync_at == NOW - timedelta(seconds=30)
    assert view.last_landed_at == NOW - timedelta(minutes=2)
    assert view.leader is not None
    assert (view.leader.state, view.leader.failures, view.leader.last_error) == ("backoff", 2, "no connection to imap")


def test_a_standby_whose_leader_is_gone_repeats_no_old_report() -> None:
    view = own_mailbox(standing_by("support", CLOCK), row("support", lease_live=False), BOOT)
    assert view.leader is None


def test_what_happened_before_this_process_started_comes_from_the_database() -> None:
    mailbox = idling("orders", CLOCK, last_push_at=None, last_landed_at=None)
    view = own_mailbox(mailbox, row("orders"), BOOT)
    assert view.last_push_at == NOW - timedelta(minutes=9)
    assert view.last_landed_at == NOW - timedelta(minutes=2)
    assert view.last_sync_at == NOW - timedelta(seconds=30), "the later of both"


def test_the_next_step_is_told_only_where_there_is_one() -> None:
    assert own_mailbox(idling("orders", CLOCK), None, BOOT).next_wait_over_at == NOW + timedelta(seconds=48)
    syncing = idling("orders", CLOCK, state=State.SYNCING, next_retry_at=NOW)
    view = own_mailbox(syncing, None, BOOT)
    assert (view.next_wait_over_at, view.next_retry_at) == (None, None)
    assert own_mailbox(refused("billing", CLOCK), None, BOOT).next_retry_at == NOW + timedelta(seconds=19)


def test_trouble_is_the_kind_of_failure() -> None:
    assert own_mailbox(refused("billing", CLOCK), None, BOOT).trouble is Trouble.AUTH
    assert own_mailbox(idling("orders", CLOCK), None, BOOT).trouble is None
    assert own_mailbox(idling("orders", CLOCK, last_sync_mono=BOOT - 999), None, BOOT).trouble is Trouble.SILENT
    stale = standing_by("support", CLOCK)
    stale.last_failure, stale.last_error = Failure.AUTH, "the guard's connection was lost"
    assert own_mailbox(stale, None, BOOT).trouble is Trouble.GUARD, "an old failure does not explain a new error"


@pytest.mark.parametrize(
    ("change", "level", "trouble"),
    [
        ({}, Level.OK, None),
        ({"state": "backoff", "failures": 1, "last_error": "the certificate has expired"}, Level.WARN, Trouble.TLS),
        ({"last_sync_at": NOW - timedelta(seconds=271)}, Level.BAD, Trouble.SILENT),
        ({"last_sync_at": None}, Level.BUSY, None),
        ({"last_sync_at": None, "failures": 3, "last_error": "refused the login"}, Level.BAD, Trouble.AUTH),
        ({"lease_live": False}, Level.BAD, Trouble.ORPHAN),
        ({"holder": None}, Level.BAD, Trouble.ORPHAN),
        ({"lease_live": False, "updated_at": NOW - timedelta(days=8)}, Level.OFF, None),
        ({"state": "draining"}, Level.OFF, None),
    ],
)
def test_a_mailbox_of_another_process_is_judged_by_its_row(
    change: dict[str, Any], level: Level, trouble: Trouble | None
) -> None:
    view = foreign_mailbox(row("legal", **change), NOW, LIMIT_SECONDS)
    assert (view.level, view.trouble, view.here) == (level, trouble, False)
    assert view.ready is (level is Level.OK)


def test_a_mailbox_that_nobody_holds_shows_no_holder_and_no_old_state() -> None:
    view = foreign_mailbox(row("legal", lease_live=False), NOW, LIMIT_SECONDS)
    assert (view.state, view.holder) == ("orphan", None)
    assert cursor("legal").state == "idling"


def test_an_error_is_shown_without_what_acts() -> None:
    mailbox = idling("orders", CLOCK, failures=1, last_error="NO \x1b[31m" + "x" * 5000)
    error = own_mailbox(mailbox, None, BOOT).last_error
    assert error is not None
    assert "\x1b" not in error
    assert len(error) == 500
