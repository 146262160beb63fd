"""What is decided about claims and not written yet, from the decision until the claim shows it.

Promises live from cycle to cycle: the shell writes what a cycle has decided while later cycles already run. A promise
ends when the claim shows it and every pod that relies on it is bound, or when no such pod is left on its node. Pods
that use the same claim share its promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from stromboli.api import core
from stromboli.scheduler.core.statuses import TaskStatus

if TYPE_CHECKING:
    from stromboli.scheduler.core.objects import Key
    from stromboli.scheduler.core.records import Node, Task
    from stromboli.scheduler.core.view import View

T = TypeVar("T")
ClaimT = TypeVar("ClaimT", bound=core.Object)


class Holder(NamedTuple):
    """A pod that is placed on the strength of a promise."""

    node: str
    key: str
    uid: str

    @classmethod
    def of(cls, task: Task, node: Node) -> Holder:
        """The pod of a task on a node."""
        return cls(node.name, task.key, task.uid)


@dataclass(slots=True)
class _Promise(Generic[T]):
    uid: str
    value: T
    holders: set[Holder] = field(default_factory=set)


class Promises(Generic[T]):
    """Promises by claim; one is made to a claim of this UID, not to another of its name."""

    def __init__(self) -> None:
        self._by_claim: dict[Key, _Promise[T]] = {}
        self.version = 0
        """Moves whenever a promise is made or ends."""

    def get(self, claim: core.Object) -> T | None:
        """What is promised to a claim."""
        promise = self._by_claim.get(claim.key)
        return promise.value if promise is not None and promise.uid == claim.uid else None

    def users(self, claim: core.Object) -> set[str]:
        """UIDs of the pods that are to use what is promised to a claim."""
        promise = self._by_claim.get(claim.key)
        return {holder.uid for holder in promise.holders} if promise is not None else set()

    def add(self, claim: core.Object, value: T, holder: Holder) -> bool:
        """One more pod relies on a promise; whether it is the first."""
        promise = self._by_claim.get(claim.key)
        known = promise is not None and promise.uid == claim.uid
        if promise is None or not known:
            promise = self._by_claim[claim.key] = _Promise(claim.uid, value)
            self.version += 1
        promise.holders.add(holder)
        return not known

    def drop(self, key: Key, holder: Holder) -> T | None:
        """A pod does not rely on a promise any more; what was promised, if it was the last."""
        promise = self._by_claim.get(key)
        if promise is None or holder not in promise.holders:
            return None
        promise.holders.discard(holder)
        if promise.holders:
            return None
        del self._by_claim[key]
        self.version += 1
        return promise.value

    def items(self) -> Iterator[tuple[Key, T]]:
        """Everything that is promised."""
        return ((key, promise.value) for key, promise in self._by_claim.items())

    def values(self) -> Iterator[T]:
        """Everything that is promised, to whomever."""
        return (promise.value for promise in self._by_claim.values())

    def tidy(self, view: View, find: Callable[[Key], ClaimT | None], is_written: Callable[[ClaimT], bool]) -> None:
        """At the beginning of a cycle: what has been written, or will not be written any more, is no promise.

        What is written may be taken back when a bind fails, so a promise outlasts all binds that rely on it.
        """
        for key, promise in list(self._by_claim.items()):
            claim = find(key)
            placed = {holder: status for holder in promise.holders if (status := _status(holder, view)) is not None}
            promise.holders = set(placed)
            settled = claim is not None and is_written(claim) and TaskStatus.BINDING not in placed.values()
            if claim is None or claim.uid != promise.uid or settled or not placed:
                del self._by_claim[key]
                self.version += 1

    def __len__(self) -> int:
        return len(self._by_claim)


def _status(holder: Holder, view: View) -> TaskStatus | None:
    """The status of a pod that is still on its node."""
    node = view.nodes_by_name.get(holder.node)
    task = node.tasks.get(holder.key) if node is not None else None
    return task.status if task is not None and task.uid == holder.uid else None
