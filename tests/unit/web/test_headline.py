"""The one line on top: the worst that is true."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ops_mail.core.ids import FolderKey
from ops_mail.core.states import State
from ops_mail.core.status import MailboxStatus
from ops_mail.web.build import build_snapshot
from ops_mail.web.headline import Headline, headline_of
from tests.browser.stage import idling, refused, standing_by
from tests.unit.web.facts import CLOCK, NOW, facts, overview, process, row


def headline(
    *mailboxes: MailboxStatus, rows: tuple[Any, ...] = (), reasons: tuple[str, ...] = (), **more: Any
) -> Headline:
    return headline_of(build_snapshot(facts(process(*mailboxes, **more), overview(*rows), reasons=list(reasons))))


OK, WARNED = idling("a", CLOCK), idling("b", CLOCK, state=State.BACKOFF, failures=1, last_error="lost")
BAD, WAITING = refused("c", CLOCK), standing_by("d", CLOCK)
NEW = MailboxStatus(FolderKey("e", "INBOX"), idle_window_seconds=120, command_timeout_seconds=30)
DOWN = {"database_ok": False, "database_error": "no answer"}


@pytest.mark.parametrize(
    ("mailboxes", "more", "key", "level"),
    [
        ((OK,), {}, "ok", "ok"),
        ((OK, WAITING), {}, "ok", "ok"),
        ((WAITING,), {}, "standby", "standby"),
        ((OK, NEW), {}, "busy", "busy"),
        ((OK, WARNED), {}, "warn", "warn"),
        ((OK, WARNED, BAD), {}, "bad", "bad"),
        ((OK,), DOWN, "database", "bad"),
        ((OK, BAD), DOWN, "bad", "bad"),
        ((NEW,), DOWN | {"started_at": NOW - timedelta(seconds=3)}, "busy", "busy"),
        ((), {"role": "consumer"}, "consumer", "ok"),
        ((idling("a", CLOCK, state=State.DRAINING),), {}, "off", "off"),
        ((), {"enabled": False, "database_ok": False}, "disabled", "off"),
        ((OK,), {"rows": (row("z", lease_live=False),)}, "elsewhere", "warn"),
        ((BAD,), {"rows": (row("z", lease_live=False),)}, "bad", "bad"),
        ((OK,), {"rows": (row("z"),)}, "ok", "ok"),
        ((OK,), {"rows": (row("z", lease_live=False, updated_at=NOW - timedelta(days=30)),)}, "ok", "ok"),
        ((OK,), {"reasons": ("listener has shown no life",)}, "stuck", "bad"),
        ((BAD,), {"reasons": ("listener has shown no life",)}, "stuck", "bad"),
    ],
)
def test_the_worst_that_is_true_is_told(
    mailboxes: tuple[MailboxStatus, ...], more: dict[str, Any], key: str, level: str
) -> None:
    found = headline(*mailboxes, **more)
    assert (found.key, found.level) == (key, level)


def test_the_mailboxes_in_trouble_are_named() -> None:
    assert headline(OK, BAD).names == ("c/INBOX",)
    assert headline(OK, WARNED).names == ("b/INBOX",)
    assert headline(OK, rows=(row("z", lease_live=False),)).names == ("z/INBOX",)
    assert headline(OK, idling("f", CLOCK)).count == 2
