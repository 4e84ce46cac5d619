"""A snapshot: what it holds, what it keeps back, and when two are the same."""

from __future__ import annotations

import dataclasses
import json
from datetime import timedelta

from ops_mail.core.mail import MessageStatus
from ops_mail.store.overview_model import Tally
from ops_mail.web.as_json import as_json
from ops_mail.web.build import build_snapshot
from ops_mail.web.look import Look
from tests.browser.stage import HERE, idling
from tests.unit.web.facts import BOOT, CLOCK, NOW, facts, instance, line, overview, process, row

SECRETIVE = line(
    subject="Merger with Acme",
    from_name="Ann Example",
    from_addr="ann@acme.example",
    error="cannot file 'Merger with Acme' of ann@acme.example (cc bob@example.org)",
)


def test_without_permission_no_subject_and_no_address_of_a_mail_is_in_it() -> None:
    status = process(idling("orders", CLOCK))
    snapshot = build_snapshot(facts(status, overview(set_aside=(SECRETIVE,), latest=(SECRETIVE,))))
    text = json.dumps(as_json(snapshot)) + repr(snapshot)
    for private in ("Merger", "Acme", "acme.example", "Ann Example", "bob@example.org"):
        assert private not in text
    assert snapshot.overview is not None
    assert snapshot.overview.set_aside[0].reason == "cannot file '[…]' of […] (cc […])"
    assert snapshot.overview.latest is None


def test_with_permission_they_are() -> None:
    status = process(idling("orders", CLOCK))
    looked = overview(set_aside=(SECRETIVE,), latest=(SECRETIVE, line(from_name="", subject="")))
    shown = build_snapshot(facts(status, looked, content_shown=True)).overview
    assert shown is not None
    assert shown.set_aside[0].subject == "Merger with Acme"
    assert shown.set_aside[0].sender == "Ann Example <ann@acme.example>"
    assert shown.set_aside[0].reason == SECRETIVE.error
    assert shown.latest is not None
    assert (shown.latest[1].subject, shown.latest[1].sender) == ("", "ann@example.org")


def test_while_the_database_is_down_memory_is_shown_and_nothing_old_from_the_database() -> None:
    status = process(idling("orders", CLOCK), database_ok=False, database_error="no answer within 5 s")
    snapshot = build_snapshot(facts(status, overview(row("legal"))))
    assert snapshot.overview is None
    assert (snapshot.database, snapshot.database_error) == ("down", "no answer within 5 s")
    assert [mailbox.name for mailbox in snapshot.mailboxes] == ["orders"]
    assert not snapshot.ready


def test_a_look_that_failed_is_told_though_the_database_answers_others() -> None:
    snapshot = build_snapshot(facts(process(idling("orders", CLOCK)), look=Look(error="too slow")))
    assert (snapshot.database, snapshot.database_error, snapshot.ready) == ("ok", "too slow", True)


def test_own_mailboxes_come_first_and_those_of_others_once() -> None:
    snapshot = build_snapshot(facts(process(idling("orders", CLOCK)), overview(row("legal"), row("orders"))))
    assert [(mailbox.name, mailbox.here) for mailbox in snapshot.mailboxes] == [("orders", True), ("legal", False)]


def test_instances_are_told_by_what_they_do() -> None:
    looked = overview(
        row("orders", holder=HERE),
        instances=(
            instance(HERE),
            instance("mail-2:1:b"),
            instance("worker:1:c", "consumer"),
            instance("mail-0:1:d", age_seconds=61),
        ),
    )
    shown = build_snapshot(facts(process(idling("orders", CLOCK)), looked)).overview
    assert shown is not None
    assert [(one.duty, one.here, one.mailboxes) for one in shown.instances] == [
        ("leader", True, ("orders/INBOX",)),
        ("standby", False, ()),
        ("consumer", False, ()),
        ("gone", False, ()),
    ]


def test_a_count_that_ended_early_takes_the_slower_whole_count() -> None:
    counted = {status: Tally(10_000, at_least=True) for status in MessageStatus}
    looked = overview(statuses=counted)
    shown = build_snapshot(facts(process(), looked, totals={"done": 3_012_345, "dead": 7})).overview
    assert shown is not None
    assert shown.messages[MessageStatus.DONE] == Tally(3_012_345)
    assert shown.messages[MessageStatus.DEAD] == Tally(10_000, at_least=True)


def test_time_that_passes_is_no_change_and_a_change_is() -> None:
    status = process(idling("orders", CLOCK))
    before = build_snapshot(facts(status, overview()))
    later = overview(at=NOW + timedelta(seconds=5))
    assert build_snapshot(facts(status, later, now=NOW + timedelta(seconds=5), now_boot=BOOT + 5)) == before
    status.mailboxes[0].backlog = 1
    assert build_snapshot(facts(status, overview())) != before


def test_hostile_names_are_shown_without_what_acts() -> None:
    looked = overview(instances=(dataclasses.replace(instance("x"), instance="evil\u202e\x1b[2J"),))
    shown = build_snapshot(facts(process(), looked)).overview
    assert shown is not None
    assert shown.instances[0].instance == "evil\ufffd[2J"
