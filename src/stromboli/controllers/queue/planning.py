"""Planning for queues: from a queue, its neighbours and an action to what is to be written. Pure.

A queue that was closed because its parent closed carries the annotation ``volcano.sh/closed-by-parent: "true"`` and
opens again with its parent; one that somebody closed by name does not. Spec 03 section 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from stromboli.api import names
from stromboli.api.core import Queue
from stromboli.api.phases import QueueAction as Action
from stromboli.api.phases import QueueState as State
from stromboli.controllers.queue import states
from stromboli.controllers.queue.states import SHUT, Outcome, Procedure


class ParentMissing(Exception):
    """The parent of a queue is not there (yet)."""


class ParentShut(Exception):
    """A queue cannot open under a parent that is closing or closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A queue, its parent and children, and whether PodGroups are left in it."""

    queue: Queue
    parent: Queue | None = None
    children: tuple[Queue, ...] = ()
    empty: bool = True


@dataclass(frozen=True, slots=True)
class SetParent:
    """Put the queue under ``parent``."""

    parent: str


@dataclass(frozen=True, slots=True)
class SetState:
    """Write ``status.state``. ``told`` says whether the outcome is worth an Event."""

    state: State
    told: bool = False


@dataclass(frozen=True, slots=True)
class MarkClosedByParent:
    """Set the annotation ``closed-by-parent`` of a queue."""

    queue: str
    value: bool


@dataclass(frozen=True, slots=True)
class Ask:
    """Have an action carried out on a queue later."""

    queue: str
    action: Action


Operation: TypeAlias = SetParent | SetState | MarkClosedByParent | Ask


def plan(view: Observed, action: Action) -> Iterator[Operation]:
    """Operations in order. Those before an error are to be carried out too.

    Raises:
        ValueError: the queue's state does not exist.
        ParentMissing: sync of a queue whose parent is not there.
        ParentShut: opening under a closed parent.
    """
    step = states.TABLE[states.state_of(view.queue.status.state)][action]
    wanted = states.follows(step.outcome, empty=view.empty)
    match step.procedure:
        case Procedure.SYNC:
            yield from _sync(view, wanted)
        case Procedure.OPEN:
            yield from _open(view, wanted)
        case Procedure.CLOSE:
            yield from _close(view, wanted, step.outcome)


def _sync(view: Observed, wanted: State) -> Iterator[Operation]:
    queue = view.queue
    top = queue.name == names.ROOT_QUEUE
    if not top and not queue.spec.parent:
        yield SetParent(names.ROOT_QUEUE)
    if queue.status.state != wanted:
        yield SetState(wanted)
    if not top:
        yield from _follow_parent(view, wanted)


def _follow_parent(view: Observed, state: State) -> Iterator[Operation]:
    if view.parent is None:
        raise ParentMissing(
            f"queue {view.queue.name}: its parent queue {_parent_name(view.queue)} does not exist. "
            "Create it, or set spec.parent to a queue that exists."
        )
    parent_shut = _shut(view.parent)
    if parent_shut and state not in SHUT:
        yield from _mark(view.queue, closed=True)
        yield Ask(view.queue.name, Action.CLOSE_QUEUE)
    elif view.parent.status.state == State.OPEN and state in SHUT and closed_by_parent(view.queue):
        yield Ask(view.queue.name, Action.OPEN_QUEUE)


def _open(view: Observed, wanted: State) -> Iterator[Operation]:
    queue, parent = view.queue, _parent_name(view.queue)
    if parent != names.ROOT_QUEUE and (view.parent is None or _shut(view.parent)):
        raise ParentShut(
            f"Failed to open queue {queue.name} because its parent queue {parent} is closing or closed. "
            "Open the parent queue first."
        )
    # Children that were closed with this queue follow it once they see it open: asked now, they would see it shut. The
    # mark comes first, because after the state there is nothing left to do that a retry would still find.
    yield from _mark(queue, closed=False)
    yield SetState(wanted, told=True)


def _close(view: Observed, wanted: State, outcome: Outcome) -> Iterator[Operation]:
    assert outcome is Outcome.DRAINED
    if view.queue.name == names.ROOT_QUEUE:
        return  # the root is never closed
    for child in view.children:
        if not _shut(child):
            yield from _mark(child, closed=True)
            yield Ask(child.name, Action.CLOSE_QUEUE)
    yield SetState(wanted, told=True)


def _mark(queue: Queue, *, closed: bool) -> Iterator[Operation]:
    if queue.metadata.annotations.get(names.CLOSED_BY_PARENT) != ("true" if closed else "false"):
        yield MarkClosedByParent(queue.name, closed)


def _parent_name(queue: Queue) -> str:
    return queue.spec.parent or names.ROOT_QUEUE


def _shut(queue: Queue) -> bool:
    return queue.status.state in SHUT


def closed_by_parent(queue: Queue) -> bool:
    """Whether the queue was closed because its parent was."""
    return queue.metadata.annotations.get(names.CLOSED_BY_PARENT) == "true"
