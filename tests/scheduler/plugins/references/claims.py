"""Volumes of pods in predicates (spec 06 sections 17.7 to 17.9): limits, zones, and binding. Which nodes are refused.

Claims are as the API server has them; what pods that were placed since have been promised follows from the story.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor

from stromboli.api import core
from tests.scheduler.plugins.reference import requirement_holds
from tests.scheduler.plugins.references.promising import promises
from tests.scheduler.plugins.references.telling import Place, Told, amount

ZONE_KEYS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
NO_PROVISIONER = "kubernetes.io/no-provisioner"
Promise = tuple[str | None, str]
"""A volume (None: one that is to be provisioned), and the node of the pod."""


class Some(list[str]):
    """Refusals of which the texts are told elsewhere: equal to any that there are."""

    def __eq__(self, other: object) -> bool:
        return bool(other)

    __hash__ = None


@dataclass
class Volumes:
    """Claims, volumes and classes by name, and limits of nodes by driver."""

    claims: dict[str, core.PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, core.PersistentVolume] = field(default_factory=dict)
    classes: dict[str, core.StorageClass] = field(default_factory=dict)
    limits: dict[str, tuple[str, int]] = field(default_factory=dict)
    weight: int = 0
    """Of the score of storage that is left, along the default shape; 0 while the gate is off."""

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """Anything of the three sections."""
        refused = self._too_many(told, pod, node) or self._elsewhere(pod, node)
        return Some(["refused"]) if refused or self.plan(told, pod, node) is None else []

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """100 less the utilisation of the volumes that the pod would get, by class; drivers do not tell their room."""
        return {node.name: self._left(self.plan(told, pod, node) or {}) * float(self.weight) for node in nodes}

    def _left(self, plan: dict[str, str | None]) -> int:
        asked: dict[str, float] = {}
        there: dict[str, float] = {}
        for claim, volume in plan.items():
            if volume is not None:
                of = self.volumes[volume].spec.storage_class_name
                asked[of] = asked.get(of, 0.0) + _size(self.claims[claim])
                there[of] = there.get(of, 0.0) + _capacity(self.volumes[volume])
        each = [100 - int(asked[of] * 100 // there[of]) for of in asked]
        return floor(sum(each) / len(each) + 0.5) if each else 0

    def _of(self, pod: core.Pod) -> list[core.PersistentVolumeClaim]:
        used = [one.persistent_volume_claim for one in pod.spec.volumes]
        return [self.claims[one.claim_name] for one in used if one is not None]

    # Limits

    def _too_many(self, told: Told, pod: core.Pod, node: core.Node) -> bool:
        driver, limit = self.limits.get(node.name, ("", 0))
        there = (Place.RUNNING, Place.LEAVING, Place.BOUND, Place.PLACED, Place.PROMISED)
        present = {handle for other in told.on(node.name, *there) for handle in self._handles(other, driver)}
        fresh = self._handles(pod, driver) - present
        return bool(fresh) and len(present) + len(fresh) > limit

    def _handles(self, pod: core.Pod, driver: str) -> set[str]:
        found = set()
        for claim in self._of(pod):
            volume = self.volumes.get(claim.spec.volume_name)
            if volume is not None:
                source = volume.spec.csi
                found |= {source.volume_handle} if source is not None and source.driver == driver else set()
            elif self.classes[claim.spec.storage_class_name or ""].provisioner == driver:
                found.add(f"to be made for {claim.name}")
        return found

    # Zones

    def _elsewhere(self, pod: core.Pod, node: core.Node) -> bool:
        labels = node.metadata.labels
        if not any(key in labels for key in ZONE_KEYS):
            return False
        for claim in self._of(pod):
            volume = self.volumes.get(claim.spec.volume_name)
            for key, value in volume.metadata.labels.items() if volume is not None else ():
                if key in ZONE_KEYS and labels.get(key, labels.get(ZONE_KEYS[key])) not in value.split("__"):
                    return True
        return False

    # Binding

    def plan(self, told: Told, pod: core.Pod, node: core.Node) -> dict[str, str | None] | None:
        """For each claim that waits for the pod its volume, None for one to be made; None where it cannot be."""
        return self._plan(pod, node, promises(told, self._promised))

    def _promised(self, pod: core.Pod, node: core.Node, before: Mapping[str, Promise]) -> dict[str, Promise] | None:
        plan = self._plan(pod, node, before)
        return None if plan is None else {claim: (volume, node.name) for claim, volume in plan.items()}

    def _plan(self, pod: core.Pod, node: core.Node, before: Mapping[str, Promise]) -> dict[str, str | None] | None:
        chosen: dict[str, str | None] = {}
        waiting: list[core.PersistentVolumeClaim] = []
        for claim in self._of(pod):
            if claim.spec.volume_name:
                if not self._reaches(self.volumes[claim.spec.volume_name], node):
                    return None
            elif claim.name in before:
                volume, where = before[claim.name]
                if volume is None and where != node.name:
                    return None
                if volume is not None and not self._reaches(self.volumes[volume], node):
                    return None
                chosen[claim.name] = volume
            else:
                waiting.append(claim)
        taken = {volume for volume, _ in before.values() if volume is not None}
        waiting.sort(key=_size)
        for claim in waiting:
            selected = claim.metadata.annotations.get("volume.kubernetes.io/selected-node")
            if selected is not None and selected != node.name:
                return None
            found = None if selected is not None else self._match(claim, node, taken)
            if found is None and not self._may_make(claim, node):
                return None
            chosen[claim.name] = found
            taken |= {found} if found is not None else set()
        return chosen

    def _match(self, claim: core.PersistentVolumeClaim, node: core.Node, taken: Iterable[str]) -> str | None:
        fitting = [
            volume
            for volume in self.volumes.values()
            if volume.spec.storage_class_name == claim.spec.storage_class_name
            and volume.name not in taken
            and _capacity(volume) >= _size(claim)
            and self._reaches(volume, node)
        ]
        own = [one for one in fitting if one.spec.claim_ref is not None and one.spec.claim_ref.name == claim.name]
        free = [one for one in fitting if one.spec.claim_ref is None]
        return min(own or free, key=_capacity).name if own or free else None

    def _may_make(self, claim: core.PersistentVolumeClaim, node: core.Node) -> bool:
        class_ = self.classes[claim.spec.storage_class_name or ""]
        if class_.provisioner in ("", NO_PROVISIONER):
            return False
        terms = class_.allowed_topologies
        return not terms or any(
            all(node.metadata.labels.get(one.key) in one.values for one in term.match_label_expressions)
            for term in terms
        )

    @staticmethod
    def _reaches(volume: core.PersistentVolume, node: core.Node) -> bool:
        affinity = volume.spec.node_affinity
        terms = affinity.required.node_selector_terms if affinity is not None and affinity.required else None
        return terms is None or any(
            all(requirement_holds(one, node.metadata.labels) for one in term.match_expressions) for term in terms
        )


def _size(claim: core.PersistentVolumeClaim) -> float:
    return amount({"memory": claim.spec.resources.requests["storage"]}, "memory")


def _capacity(volume: core.PersistentVolume) -> float:
    return amount({"memory": volume.spec.capacity["storage"]}, "memory")
