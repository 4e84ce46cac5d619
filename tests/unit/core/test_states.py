"""The life of a mailbox, pair by pair."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_mail.core.states import TRANSITIONS, Event, IllegalTransition, State, transition

SESSION = {State.CONNECTING, State.SELECTING, State.SYNCING, State.IDLING, State.POLLING, State.ENDING}
LEADING = SESSION | {State.BACKOFF}


def test_the_usual_day_runs_through_every_session_state_and_back_to_idling() -> None:
    state = State.STANDBY
    seen = [state]
    for event in (
        Event.GUARD_ACQUIRED,
        Event.LOGGED_IN,
        Event.RECONCILED,
        Event.DRAINED_TO_IDLE,
        Event.WAIT_OVER,
        Event.ENDED,
        Event.DRAINED_TO_POLL,
        Event.WAIT_OVER,
        Event.ENDED,
    ):
        state = transition(state, event)
        seen.append(state)
    assert seen == [
        State.STANDBY,
        State.CONNECTING,
        State.SELECTING,
        State.SYNCING,
        State.IDLING,
        State.ENDING,
        State.SYNCING,
        State.POLLING,
        State.ENDING,
        State.SYNCING,
    ]


@pytest.mark.parametrize("state", sorted(SESSION))
def test_a_failure_in_any_session_state_backs_off_and_then_connects_anew(state: State) -> None:
    assert transition(state, Event.FAILED) is State.BACKOFF
    assert transition(State.BACKOFF, Event.RETRY_DUE) is State.CONNECTING


@pytest.mark.parametrize("state", sorted(LEADING))
def test_losing_the_guard_in_any_leading_state_means_standby(state: State) -> None:
    assert transition(state, Event.GUARD_LOST) is State.STANDBY


@pytest.mark.parametrize("state", sorted(LEADING | {State.STANDBY}))
def test_a_stop_in_any_live_state_drains_and_then_stops(state: State) -> None:
    assert transition(state, Event.STOP) is State.DRAINING
    assert transition(State.DRAINING, Event.STOPPED) is State.STOPPED


def test_every_pair_outside_the_table_raises_and_names_both() -> None:
    for state, event in itertools.product(State, Event):
        if (state, event) not in TRANSITIONS:
            with pytest.raises(IllegalTransition, match=f"{event} cannot happen in {state}"):
                transition(state, event)


def test_stopped_is_final() -> None:
    assert not [pair for pair in TRANSITIONS if pair[0] is State.STOPPED]


@given(st.lists(st.sampled_from(list(Event)), max_size=60))
def test_whatever_happens_a_stop_reaches_stopped_in_two_steps(events: list[Event]) -> None:
    state = State.STANDBY
    for event in events:
        state = TRANSITIONS.get((state, event), state)
    if state is not State.STOPPED:
        if state is not State.DRAINING:
            state = transition(state, Event.STOP)
        state = transition(state, Event.STOPPED)
    assert state is State.STOPPED
