"""The states of a queue as data: what each action does in each state, and which state follows (spec 03 section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from stromboli.api.phases import QueueAction as Action
from stromboli.api.phases import QueueState as State


class Procedure(Enum):
    """What is done besides writing the state."""

    SYNC = "sync"
    OPEN = "open"
    CLOSE = "close"


class Outcome(Enum):
    """Which state follows."""

    OPEN = "Open"
    CLOSED = "Closed"
    DRAINED = "Closed when empty, else Closing"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Step:
    """What one action does in one state."""

    procedure: Procedure
    outcome: Outcome


_OPENED = Step(Procedure.OPEN, Outcome.OPEN)
_CLOSING = Step(Procedure.CLOSE, Outcome.DRAINED)
_STILL_OPEN = Step(Procedure.SYNC, Outcome.OPEN)
_STILL_CLOSED = Step(Procedure.SYNC, Outcome.CLOSED)
_DRAINING = Step(Procedure.SYNC, Outcome.DRAINED)

TABLE: Final[Mapping[State, Mapping[Action, Step]]] = {
    State.OPEN: {Action.SYNC_QUEUE: _STILL_OPEN, Action.OPEN_QUEUE: _STILL_OPEN, Action.CLOSE_QUEUE: _CLOSING},
    State.CLOSING: {Action.SYNC_QUEUE: _DRAINING, Action.OPEN_QUEUE: _OPENED, Action.CLOSE_QUEUE: _DRAINING},
    State.CLOSED: {Action.SYNC_QUEUE: _STILL_CLOSED, Action.OPEN_QUEUE: _OPENED, Action.CLOSE_QUEUE: _STILL_CLOSED},
    State.UNKNOWN: {
        Action.SYNC_QUEUE: Step(Procedure.SYNC, Outcome.UNKNOWN),
        Action.OPEN_QUEUE: _OPENED,
        Action.CLOSE_QUEUE: _CLOSING,
    },
}
"""State × action → step. A new queue, without a state, is Open."""

SHUT: Final = frozenset({State.CLOSED, State.CLOSING})
"""States in which a queue takes no new jobs."""


def action_of(text: str) -> Action:
    """The action spelled ``text``; anything unknown is a sync."""
    try:
        return Action(text)
    except ValueError:
        return Action.SYNC_QUEUE


def state_of(text: str) -> State:
    """The state spelled ``text``; a new queue is Open. Raises ``ValueError`` for a state that does not exist."""
    return State(text) if text else State.OPEN


def follows(outcome: Outcome, *, empty: bool) -> State:
    """The next state; ``empty`` tells whether no PodGroup of whatever phase is left in the queue."""
    if outcome is Outcome.DRAINED:
        return State.CLOSED if empty else State.CLOSING
    return {Outcome.OPEN: State.OPEN, Outcome.CLOSED: State.CLOSED, Outcome.UNKNOWN: State.UNKNOWN}[outcome]
