"""Alive, stuck, ready."""

from __future__ import annotations

import pytest

from ops_mail.core.health import Pulse, mailbox_readiness, stuck_reasons
from ops_mail.core.ids import FolderKey
from ops_mail.core.repeats import RepeatLimiter
from ops_mail.core.states import State
from ops_mail.core.status import MailboxStatus

LIMIT = 2 * 120 + 30


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def mailbox(state: State, **values: object) -> MailboxStatus:
    status = MailboxStatus(FolderKey("ops", "INBOX"), idle_window_seconds=120, command_timeout_seconds=30, state=state)
    for name, value in values.items():
        setattr(status, name, value)
    return status


def test_a_pulse_that_is_late_by_more_than_the_slack_is_a_reason_and_says_what_it_was_doing() -> None:
    clock = Hand()
    pulse = Pulse("listener:ops/INBOX", clock)
    pulse.expect(10, "idling")
    clock.at += 18
    assert stuck_reasons([pulse], clock()) == []
    clock.at += 0.5
    assert stuck_reasons([pulse], clock()) == [
        "listener:ops/INBOX has shown no life for 8 s longer than it promised (doing: idling)"
    ]


def test_a_resting_pulse_is_never_late_and_a_new_promise_ends_lateness() -> None:
    clock = Hand()
    pulse = Pulse("x", clock)
    clock.at += 1000
    assert stuck_reasons([pulse], clock())
    pulse.expect(1, "again")
    assert not stuck_reasons([pulse], clock())
    pulse.rest()
    clock.at += 1000
    assert not stuck_reasons([pulse], clock())


@pytest.mark.parametrize(
    ("status", "ready", "reason"),
    [
        (mailbox(State.IDLING, last_sync_mono=1000.0), True, ""),
        (mailbox(State.IDLING, last_sync_mono=1000.0 - LIMIT), True, ""),
        (mailbox(State.IDLING, last_sync_mono=999.0 - LIMIT), False, "last sync 271 s ago"),
        (mailbox(State.BACKOFF, failures=1, last_error="refused", last_sync_mono=990.0), True, "refused"),
        (
            mailbox(State.BACKOFF, failures=9, last_error="refused", last_sync_mono=1.0),
            False,
            "last sync 999 s ago: refused",
        ),
        (mailbox(State.CONNECTING), False, "never synced"),
        (mailbox(State.BACKOFF, failures=1, last_error="bad password"), False, "never synced: bad password"),
        (mailbox(State.SYNCING, last_progress_mono=999.0, backlog=41), True, "catching up, 41 to go"),
        (mailbox(State.SYNCING, last_progress_mono=1.0), False, "never synced"),
        (mailbox(State.STANDBY), False, "the guard has not been seen yet"),
        (mailbox(State.STANDBY, standby_seen_mono=990.0, holder="a:1:x"), True, "standing by for a:1:x"),
        (mailbox(State.STANDBY, standby_seen_mono=900.0, last_error="database down"), False, "database down"),
        (mailbox(State.DRAINING, last_sync_mono=1000.0), False, "stopping"),
    ],
)
def test_readiness(status: MailboxStatus, ready: bool, reason: str) -> None:
    verdict = mailbox_readiness(status, 1000.0)
    assert (verdict.ready, verdict.reason) == (ready, reason)


def test_a_repeated_failure_is_told_at_growing_intervals_and_anew_after_it_ended() -> None:
    limiter = RepeatLimiter()
    assert [n for n in (limiter.admit("down") for _ in range(100)) if n] == [1, 2, 4, 8, 16, 32, 64]
    assert limiter.admit("another") == 1
    limiter.forget()
    assert limiter.admit("down") == 1


def test_a_failure_whose_text_differs_in_numbers_alone_is_the_same_failure() -> None:
    limiter = RepeatLimiter()
    dovecot = [f"NO Mailbox doesn't exist ({n / 1000:.3f} + 0.000{' + 0.001' * (n % 2)} secs)." for n in range(8)]
    assert [n for n in map(limiter.admit_error, dovecot) if n] == [1, 2, 4, 8]
    assert limiter.admit_error("connection refused") == 1
    assert [limiter.admit("refused 10.0.0.1"), limiter.admit("refused 10.0.0.2")] == [1, 1], "a plain key is itself"
