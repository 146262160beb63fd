"""The state machine of queues: spec 03 section 4.2, and an exploration of everything that can happen (P29)."""

from __future__ import annotations

import pytest

from stromboli.api.phases import QueueAction as Action
from stromboli.api.phases import QueueState as State
from stromboli.controllers.queue import states
from stromboli.controllers.queue.states import Procedure

CELLS: list[tuple[str, Action, Procedure, State, State]] = [
    ("", Action.SYNC_QUEUE, Procedure.SYNC, State.OPEN, State.OPEN),
    ("", Action.OPEN_QUEUE, Procedure.SYNC, State.OPEN, State.OPEN),
    ("", Action.CLOSE_QUEUE, Procedure.CLOSE, State.CLOSED, State.CLOSING),
    ("Open", Action.SYNC_QUEUE, Procedure.SYNC, State.OPEN, State.OPEN),
    ("Open", Action.OPEN_QUEUE, Procedure.SYNC, State.OPEN, State.OPEN),
    ("Open", Action.CLOSE_QUEUE, Procedure.CLOSE, State.CLOSED, State.CLOSING),
    ("Closing", Action.SYNC_QUEUE, Procedure.SYNC, State.CLOSED, State.CLOSING),
    ("Closing", Action.OPEN_QUEUE, Procedure.OPEN, State.OPEN, State.OPEN),
    ("Closing", Action.CLOSE_QUEUE, Procedure.SYNC, State.CLOSED, State.CLOSING),
    ("Closed", Action.SYNC_QUEUE, Procedure.SYNC, State.CLOSED, State.CLOSED),
    ("Closed", Action.OPEN_QUEUE, Procedure.OPEN, State.OPEN, State.OPEN),
    ("Closed", Action.CLOSE_QUEUE, Procedure.SYNC, State.CLOSED, State.CLOSED),
    ("Unknown", Action.SYNC_QUEUE, Procedure.SYNC, State.UNKNOWN, State.UNKNOWN),
    ("Unknown", Action.OPEN_QUEUE, Procedure.OPEN, State.OPEN, State.OPEN),
    ("Unknown", Action.CLOSE_QUEUE, Procedure.CLOSE, State.CLOSED, State.CLOSING),
]


@pytest.mark.parametrize(("state", "action", "procedure", "when_empty", "otherwise"), CELLS)
def test_every_cell(state: str, action: Action, procedure: Procedure, when_empty: State, otherwise: State) -> None:
    step = states.TABLE[states.state_of(state)][action]
    assert step.procedure is procedure
    assert states.follows(step.outcome, empty=True) is when_empty
    assert states.follows(step.outcome, empty=False) is otherwise


def test_a_state_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="Ajar"):
        states.state_of("Ajar")


@pytest.mark.parametrize("text", ["", "SyncQueue", "AbortJob", "Dance"])
def test_other_actions_are_a_sync(text: str) -> None:
    assert states.action_of(text) is Action.SYNC_QUEUE


def test_no_state_is_a_trap() -> None:
    """From every state that any sequence of actions and PodGroups leads to, the queue can be opened and closed."""
    todo, seen = [(State.OPEN, True)], set[tuple[State, bool]]()
    while todo:
        state, empty = todo.pop()
        if (state, empty) in seen:
            continue
        seen.add((state, empty))
        todo += [(state, not empty)]
        todo += [(states.follows(step.outcome, empty=empty), empty) for step in states.TABLE[state].values()]
    assert {state for state, _ in seen} == {State.OPEN, State.CLOSING, State.CLOSED}
    for state, _ in seen:
        assert states.follows(states.TABLE[state][Action.OPEN_QUEUE].outcome, empty=False) is State.OPEN
        closed = states.follows(states.TABLE[state][Action.CLOSE_QUEUE].outcome, empty=True)
        assert closed is State.CLOSED
