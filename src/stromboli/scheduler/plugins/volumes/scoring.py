"""How full storage would be: a score of nodes for pods whose claims wait for them (spec 06 section 17.9).

Only with gate StorageCapacityScoring, which is off unless asked for.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydantic import ValidationError, model_validator

from stromboli.scheduler.core import volumes
from stromboli.scheduler.plugins import arguments

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.objects import ClusterObjects
    from stromboli.scheduler.core.plugin import Arguments
    from stromboli.scheduler.core.records import Node, Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.plugins.volumes.claiming import VolumeClaims

GATE = "StorageCapacityScoring"
SHAPE = "volumebinding.shape"
FULL = 100
_SCALE = 10
"""Scores of a shape go from 0 to 10, those of nodes to 100."""


class Point(arguments.ArgumentsModel):
    """A utilisation in percent, and the score from 0 to 10 that it gets."""

    utilization: arguments.Integer = 0
    score: arguments.Integer = 0

    @model_validator(mode="before")
    @classmethod
    def _any_case(cls, given: object) -> object:
        return {str(key).lower(): value for key, value in given.items()} if isinstance(given, dict) else given


DEFAULT_SHAPE = (Point(utilization=0, score=10), Point(utilization=FULL, score=0))


def shape_of(given: Arguments) -> tuple[Point, ...]:
    """The points of the argument ``volumebinding.shape``; the default when it cannot be read."""
    listed = given.get(SHAPE)
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        return DEFAULT_SHAPE
    try:
        return tuple(Point.model_validate(point) for point in listed)
    except ValidationError:
        return DEFAULT_SHAPE


@dataclass(frozen=True, slots=True)
class StorageScore:
    """The score; ``weight`` is applied to it, it is not normalised."""

    claims: VolumeClaims
    objects: ClusterObjects
    shape: tuple[Point, ...]
    weight: int

    def rate(self, task: Task, rows: Rows) -> Floats | None:
        """Rows by the mean over storage classes of what their utilisation is worth."""
        nodes = self.claims.view.node_list
        scores = [0 if (node := nodes[row]) is None else self._of(task, node) for row in rows.tolist()]
        return np.array(scores, dtype=np.float64) * self.weight

    def _of(self, task: Task, node: Node) -> int:
        plan = self.claims.plan_on(task, node)
        classes = self._utilisations(plan, node) if plan is not None else []
        return math.floor(sum(map(self._worth, classes)) / len(classes) + 0.5) if classes else 0

    def _utilisations(self, plan: volumes.VolumePlan, node: Node) -> list[int]:
        """Percent by storage class: of existing volumes if there are any, else of what drivers can provision."""
        asked: defaultdict[str, int] = defaultdict(int)
        present: defaultdict[str, int] = defaultdict(int)
        for volume, claim in plan.static:
            asked[volume.spec.storage_class_name] += volumes.size_of(claim)
            present[volume.spec.storage_class_name] += volumes.capacity_of(volume)
        for claim in plan.provision if not plan.static else ():
            room = volumes.room_on(claim, node.resource, self.objects) if node.resource is not None else None
            if room is not None:
                asked[claim.spec.storage_class_name or ""] += volumes.size_of(claim)
                present[claim.spec.storage_class_name or ""] += room
        return [_percent(asked[name], present[name]) for name in asked]

    def _worth(self, utilisation: int) -> int:
        """The score of a utilisation: along straight lines between the points of the shape."""
        points = self.shape
        if utilisation <= points[0].utilization:
            return points[0].score * _SCALE
        for left, right in zip(points, points[1:], strict=False):
            if utilisation <= right.utilization:
                rise = (right.score - left.score) * _SCALE * (utilisation - left.utilization)
                return left.score * _SCALE + int(rise / (right.utilization - left.utilization))
        return points[-1].score * _SCALE


def _percent(asked: int, present: int) -> int:
    return FULL if present == 0 or asked > present else asked * FULL // present
