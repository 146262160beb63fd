"""Zones of volumes: a node must be in one of the zones and regions that a volume is labelled with (spec 06 section
17.8). Only claims by name are looked at, not ephemeral ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import core
from stromboli.scheduler.core.plugin import Refusals
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.volumes import WAIT_FOR_FIRST_CONSUMER, VolumeProblem
from stromboli.scheduler.plugins.selecting import ABSENT

if TYPE_CHECKING:
    from stromboli.scheduler.core.objects import ClusterObjects
    from stromboli.scheduler.core.records import Task
    from stromboli.scheduler.core.tables import Bools, Rows
    from stromboli.scheduler.plugins.selecting import NodeLabels

WRONG_ZONE = Reason("node(s) had no available volume zone", Code.UNRESOLVABLE)

_PRESENT_KEY = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
KEYS = (*_PRESENT_KEY, *_PRESENT_KEY.values())
SEPARATOR = "__"
"""Between the zones of a volume that is in several."""


@dataclass(slots=True)
class VolumeZones:
    """The filter."""

    objects: ClusterObjects
    labels: NodeLabels
    reasons: list[Reason] = field(default_factory=lambda: [WRONG_ZONE])

    @staticmethod
    def concerns(task: Task) -> bool:
        """Whether the pod has claims by name."""
        return any(volume.persistent_volume_claim is not None for volume in task.shape.pod.spec.volumes)

    def refuse(self, task: Task, rows: Rows) -> Refusals | None:
        """Rows outside of the zones of some volume of the pod."""
        try:
            allowed = list(self._allowed(task))
        except VolumeProblem as problem:
            reason = Reason(str(problem), Code.UNRESOLVABLE)
            if reason not in self.reasons:
                self.reasons.append(reason)
            return np.full(len(rows), self.reasons.index(reason) + 1, dtype=np.uint8)
        if not allowed:
            return None
        refused = np.zeros(len(rows), dtype=bool)
        for key, values in allowed:
            refused |= ~self._has(key, values, rows)
        return (refused & self._zoned(rows)).astype(np.uint8)

    def _zoned(self, rows: Rows) -> Bools:
        """Rows of nodes that are in some zone or region: others are taken for everywhere."""
        zoned = np.zeros(len(rows), dtype=bool)
        for key in KEYS:
            zoned |= self.labels.column(key)[0][rows] != ABSENT
        return zoned

    def _has(self, key: str, values: frozenset[str], rows: Rows) -> Bools:
        found = self._among(key, values, rows)
        present = _PRESENT_KEY.get(key)
        if present is not None:
            without = self.labels.column(key)[0][rows] == ABSENT
            found |= without & self._among(present, values, rows)
        return found

    def _among(self, key: str, values: frozenset[str], rows: Rows) -> Bools:
        codes, by_value = self.labels.column(key)
        return np.isin(codes[rows], [by_value[value] for value in values if value in by_value])

    def _allowed(self, task: Task) -> Iterator[tuple[str, frozenset[str]]]:
        """Label keys and the values that some volume of the pod allows. Raises VolumeProblem."""
        for reference in task.shape.pod.spec.volumes:
            if reference.persistent_volume_claim is not None:
                volume = self._volume(reference.persistent_volume_claim.claim_name, task.namespace)
                labels = volume.metadata.labels if volume is not None else {}
                for key in KEYS:
                    if key in labels:
                        yield key, frozenset(labels[key].split(SEPARATOR))

    def _volume(self, name: str, namespace: str) -> core.PersistentVolume | None:
        """The volume of a claim; None when it will be found once the pod has a node."""
        claim = self.objects.get(core.PersistentVolumeClaim, name, namespace)
        if claim is None:
            raise VolumeProblem(f'persistentvolumeclaim "{name}" not found')
        if not claim.spec.volume_name:
            self._check_waits(claim)
            return None
        volume = self.objects.get(core.PersistentVolume, claim.spec.volume_name)
        if volume is None:
            raise VolumeProblem(f'persistentvolume "{claim.spec.volume_name}" not found')
        return volume

    def _check_waits(self, claim: core.PersistentVolumeClaim) -> None:
        class_name = claim.spec.storage_class_name
        if not class_name:
            raise VolumeProblem("PersistentVolumeClaim had no pv name and storageClass name")
        class_ = self.objects.get(core.StorageClass, class_name)
        if class_ is None:
            raise VolumeProblem(f'storageclass.storage.k8s.io "{class_name}" not found')
        if not class_.volume_binding_mode:
            raise VolumeProblem(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        if class_.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
            raise VolumeProblem("PersistentVolume had no name")
