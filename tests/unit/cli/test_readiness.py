"""What `status` makes of a mailbox's row."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ops_mail.cli.readiness import judge_all
from ops_mail.core.ids import FolderKey
from ops_mail.settings import load_settings
from tests.unit.cli.cursor_row import GOOD, KEY, NOW

OTHER = FolderKey("support", "INBOX")
LIMIT = 270.0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"state": "syncing"}, ""),
        ({"last_sync_at": NOW - timedelta(seconds=270)}, ""),
        ({"last_sync_at": NOW + timedelta(seconds=5)}, ""),
        ({"lease_live": False}, "no living instance holds it"),
        ({"holder": None}, "no living instance holds it"),
        ({"state": "backoff", "failures": 3}, "in backoff after 3 failures"),
        (
            {"state": "backoff", "failures": 1, "last_error": "login refused"},
            "in backoff after 1 failure: login refused",
        ),
        (
            {"state": "connecting", "failures": 2, "last_error": "login refused"},
            "connecting again after 2 failures: login refused",
        ),
        ({"state": "selecting", "failures": 1}, "connecting again after 1 failure"),
        ({"state": "connecting"}, "its instance is connecting"),
        ({"state": "draining"}, "its instance is stopping"),
        ({"last_sync_at": None}, "never synced"),
        ({"last_sync_at": NOW - timedelta(seconds=271)}, "last sync 271 s ago"),
        ({"last_sync_at": NOW - timedelta(seconds=999), "last_error": "lost"}, "last sync 999 s ago: lost"),
    ],
)
def test_a_mailbox_is_ready_while_a_living_instance_keeps_it_in_sync(changes: dict[str, Any], reason: str) -> None:
    (judged,) = judge_all([replace(GOOD, **changes)], [KEY], NOW, LIMIT)
    assert (judged.ready, judged.reason) == (not reason, reason)


def test_a_mailbox_in_sync_again_tells_what_it_got_over() -> None:
    row = replace(GOOD, state="syncing", failures=2, last_error="login refused")
    (judged,) = judge_all([row], [KEY], NOW, LIMIT)
    assert (judged.ready, judged.reason) == (True, "in sync again after 2 failures: login refused")


def test_a_mailbox_without_a_row_is_not_ready() -> None:
    (judged,) = judge_all([], [KEY], NOW, LIMIT)
    assert (judged.ready, judged.reason, judged.expected) == (False, "no instance has ever listened to it", True)


def test_rows_of_other_mailboxes_are_shown_but_not_expected() -> None:
    gone = replace(GOOD, key=OTHER, lease_live=False)
    mine, other = judge_all([gone, GOOD], [KEY], NOW, LIMIT)
    assert (mine.key, mine.expected, mine.ready) == (KEY, True, True)
    assert (other.key, other.expected, other.ready) == (OTHER, False, False)


def test_without_mailboxes_in_the_settings_every_row_is_expected() -> None:
    gone = replace(GOOD, key=OTHER, lease_live=False)
    assert [(judged.key, judged.expected) for judged in judge_all([GOOD, gone], [], NOW, LIMIT)] == [
        (KEY, True),
        (OTHER, True),
    ]


def test_the_limit_is_two_windows_and_a_command() -> None:
    variables = {"OPS_MAIL_IDLE_SECONDS": "100", "OPS_MAIL_POLL_SECONDS": "10", "OPS_MAIL_COMMAND_TIMEOUT_SECONDS": "7"}
    assert load_settings(variables, None, mailboxes_required=False).session.sync_limit_seconds == 207
    variables["OPS_MAIL_POLL_SECONDS"] = "600"
    assert load_settings(variables, None, mailboxes_required=False).session.sync_limit_seconds == 1207
