"""How full storage would be (spec 06 section 17.9, Score), of existing volumes and of what drivers can provision.

Drivers tell with CSIStorageCapacity objects how much room there is where; where a driver says that it tells, no volume
is provisioned without room for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor

from stromboli.api import core
from tests.scheduler.plugins.reference import requirement_holds
from tests.scheduler.plugins.references.claims import Volumes
from tests.scheduler.plugins.references.telling import Told, amount

Shape = Sequence[tuple[int, int]]
"""Utilisation in percent and score from 0 to 10, rising by utilisation."""


@dataclass
class Storage(Volumes):
    """Volumes, with room that drivers tell of. The score counts ``weight`` times."""

    rooms: list[core.CSIStorageCapacity] = field(default_factory=list)
    telling: frozenset[str] = frozenset()
    """Provisioners that provision nothing but where they have told of room."""
    shape: Shape = ((0, 10), (100, 0))

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """The mean over storage classes of what their utilisation is worth."""
        return {node.name: self._score(told, pod, node) * float(self.weight) for node in nodes}

    def _score(self, told: Told, pod: core.Pod, node: core.Node) -> int:
        plan = self.plan(told, pod, node) or {}
        existing = {claim: volume for claim, volume in plan.items() if volume is not None}
        asked: dict[str, float] = {}
        there: dict[str, float] = {}
        for name in existing or plan:
            claim, volume = self.claims[name], existing.get(name)
            room = self._room(claim, node) if volume is None else _bytes(self.volumes[volume].spec.capacity["storage"])
            if room is not None:
                of = claim.spec.storage_class_name or ""
                asked[of] = asked.get(of, 0.0) + _bytes(claim.spec.resources.requests["storage"])
                there[of] = there.get(of, 0.0) + room
        each = [self._worth(int(asked[of] * 100 // there[of]) if 0 < asked[of] <= there[of] else 100) for of in asked]
        return floor(sum(each) / len(each) + 0.5) if each else 0

    def _worth(self, utilisation: int) -> int:
        """Flat beyond both ends of the shape, and a straight line between two points of it; no fractions."""
        before = [point for point in self.shape if point[0] <= utilisation]
        after = [point for point in self.shape if point[0] >= utilisation]
        if not before or not after:
            return 10 * (after[0] if after else before[-1])[1]
        (left, low), (right, high) = before[-1], after[0]
        return 10 * low + (int((high - low) * 10 * (utilisation - left) / (right - left)) if right > left else 0)

    def _room(self, claim: core.PersistentVolumeClaim, node: core.Node) -> float | None:
        """Of the room that reaches the node the largest; None when nobody tells."""
        told = [_bytes(one.capacity) for one in self._reaching(claim, node) if one.capacity is not None]
        return max(told, default=None)

    def _reaching(self, claim: core.PersistentVolumeClaim, node: core.Node) -> list[core.CSIStorageCapacity]:
        return [
            one
            for one in self.rooms
            if one.storage_class_name == claim.spec.storage_class_name
            and one.node_topology is not None
            and all(node.metadata.labels.get(key) == value for key, value in one.node_topology.match_labels.items())
            and all(requirement_holds(each, node.metadata.labels) for each in one.node_topology.match_expressions)
        ]

    def _may_make(self, claim: core.PersistentVolumeClaim, node: core.Node) -> bool:
        if not super()._may_make(claim, node):
            return False
        if self.classes[claim.spec.storage_class_name or ""].provisioner not in self.telling:
            return True
        largest = [
            one.capacity if one.maximum_volume_size is None else one.maximum_volume_size
            for one in self._reaching(claim, node)
        ]
        size = _bytes(claim.spec.resources.requests["storage"])
        return any(_bytes(room) >= size for room in largest if room is not None)


def _bytes(text: str | int | float) -> float:
    return amount({"memory": text}, "memory")
