"""Device claims whose allocation is decided but not written yet, from the decision until the claim shows it.

They live from cycle to cycle: the shell writes an allocation while later cycles already run. A promise ends when the
claim shows an allocation, or when no pod is left that is being bound on the strength of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from stromboli.api import core

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stromboli.scheduler.core.view import View

_NAME = "device-promises"

ClaimKey: TypeAlias = tuple[str, str]


class Holder(NamedTuple):
    """A pod for which a claim is allocated."""

    node: str
    key: str
    uid: str


@dataclass(slots=True)
class Promise:
    """An allocation, and the pods that are to use it."""

    uid: str
    allocation: core.DeviceAllocation
    holders: set[Holder] = field(default_factory=set)


class Promises:
    """Promises by claim."""

    def __init__(self) -> None:
        self._by_claim: dict[ClaimKey, Promise] = {}
        self.version = 0
        """Moves with every change."""

    def get(self, claim: core.ResourceClaim) -> core.DeviceAllocation | None:
        """What is promised to this very claim."""
        promise = self._by_claim.get(claim.key)
        return promise.allocation if promise is not None and promise.uid == claim.uid else None

    def users(self, claim: core.ResourceClaim) -> set[str]:
        """UIDs of the pods that are to use what is promised to this claim."""
        promise = self._by_claim.get(claim.key)
        return {holder.uid for holder in promise.holders} if promise is not None else set()

    def add(self, claim: core.ResourceClaim, allocation: core.DeviceAllocation, holder: Holder) -> bool:
        """One more pod uses an allocation; whether it is the first."""
        promise = self._by_claim.get(claim.key)
        first = promise is None or promise.uid != claim.uid
        if first or promise is None:
            promise = self._by_claim[claim.key] = Promise(claim.uid, allocation)
            self.version += 1
        promise.holders.add(holder)
        return first

    def drop(self, key: ClaimKey, holder: Holder) -> core.DeviceAllocation | None:
        """A pod does not use an allocation any more; what has become free if it was the last."""
        promise = self._by_claim.get(key)
        if promise is None:
            return None
        promise.holders.discard(holder)
        if promise.holders:
            return None
        del self._by_claim[key]
        self.version += 1
        return promise.allocation

    def allocations(self) -> Iterator[core.DeviceAllocation]:
        """Everything that is promised."""
        return (promise.allocation for promise in self._by_claim.values())

    def tidy(self, view: View) -> None:
        """At the beginning of a cycle: what has been written, or will not be written any more, is no promise."""
        for key, promise in list(self._by_claim.items()):
            claim = view.objects.get(core.ResourceClaim, key[1], key[0])
            promise.holders = {holder for holder in promise.holders if _is_placed(holder, view)}
            written = claim is not None and claim.status.allocation is not None
            if claim is None or claim.uid != promise.uid or written or not promise.holders:
                del self._by_claim[key]
                self.version += 1

    def __len__(self) -> int:
        return len(self._by_claim)


def _is_placed(holder: Holder, view: View) -> bool:
    node = view.nodes_by_name.get(holder.node)
    task = node.tasks.get(holder.key) if node is not None else None
    return task is not None and task.uid == holder.uid


def of(view: View) -> Promises:
    """The promises at the beginning of this cycle."""
    promises = view.memory.get(_NAME)
    if not isinstance(promises, Promises):
        promises = view.memory[_NAME] = Promises()
    promises.tidy(view)
    return promises
