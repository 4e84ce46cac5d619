"""The life of one mailbox as a literal table; an event that the table does not know in a state is a bug."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class State(StrEnum):
    """Where a mailbox is; the column `state` of `ops_mail_cursor` and the label of `mailbox_state`."""

    STANDBY = "standby"
    CONNECTING = "connecting"
    SELECTING = "selecting"
    SYNCING = "syncing"
    IDLING = "idling"
    POLLING = "polling"
    ENDING = "ending"
    BACKOFF = "backoff"
    DRAINING = "draining"
    STOPPED = "stopped"


class Event(StrEnum):
    """What may happen to a mailbox."""

    GUARD_ACQUIRED = "guard_acquired"
    LOGGED_IN = "logged_in"
    RECONCILED = "reconciled"
    DRAINED_TO_IDLE = "drained_to_idle"
    DRAINED_TO_POLL = "drained_to_poll"
    WAIT_OVER = "wait_over"  # a push, or the IDLE window or poll interval is over
    ENDED = "ended"  # tagged OK of DONE
    FAILED = "failed"  # lost, timeout, protocol error, database away
    RETRY_DUE = "retry_due"
    GUARD_LOST = "guard_lost"
    STOP = "stop"
    STOPPED = "stopped"


class IllegalTransition(Exception):
    """The table has no row for this pair: a programming error, never caught on purpose."""


_SESSION = (State.CONNECTING, State.SELECTING, State.SYNCING, State.IDLING, State.POLLING, State.ENDING)
_LEADING = (*_SESSION, State.BACKOFF)
_LIVE = (State.STANDBY, *_LEADING)

_table: dict[tuple[State, Event], State] = {
    (State.STANDBY, Event.GUARD_ACQUIRED): State.CONNECTING,
    (State.CONNECTING, Event.LOGGED_IN): State.SELECTING,
    (State.SELECTING, Event.RECONCILED): State.SYNCING,
    (State.SYNCING, Event.DRAINED_TO_IDLE): State.IDLING,
    (State.SYNCING, Event.DRAINED_TO_POLL): State.POLLING,
    (State.IDLING, Event.WAIT_OVER): State.ENDING,
    (State.POLLING, Event.WAIT_OVER): State.ENDING,
    (State.ENDING, Event.ENDED): State.SYNCING,
    (State.BACKOFF, Event.RETRY_DUE): State.CONNECTING,
    (State.DRAINING, Event.STOPPED): State.STOPPED,
}
# Stopping is final: the session may still end its step, fail or lose the guard, and it changes nothing.
_table |= {
    (State.DRAINING, event): State.DRAINING for event in Event if event not in (Event.GUARD_ACQUIRED, Event.STOPPED)
}
_table |= {(state, Event.FAILED): State.BACKOFF for state in _SESSION}
_table |= {(state, Event.GUARD_LOST): State.STANDBY for state in _LEADING}
_table |= {(state, Event.STOP): State.DRAINING for state in _LIVE}

TRANSITIONS: Mapping[tuple[State, Event], State] = MappingProxyType(_table)


def transition(state: State, event: Event) -> State:
    """The state after `event` in `state`. Raises `IllegalTransition` when the table has no such row."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise IllegalTransition(f"{event} cannot happen in {state}") from None
