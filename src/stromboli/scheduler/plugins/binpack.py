"""binpack: the fullest node that fits is the best (spec 06 section 14)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stromboli.scheduler.core import policy
from stromboli.scheduler.core.columns import PODS, Floats
from stromboli.scheduler.core.plugin import Arguments, Hooks, Plugin, Reach, Score
from stromboli.scheduler.plugins import arguments as models

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View


class Binpack(Plugin):
    """One score over the resources that have a weight."""

    name: ClassVar[str] = "binpack"
    arguments_model = models.model(
        "BinpackArguments",
        binpack__weight=models.Integer,
        binpack__cpu=models.Integer,
        binpack__memory=models.Integer,
        binpack__resources=models.Text,
    )

    def open(self, view: View) -> Hooks:
        self._weight = policy.integer(self.arguments, "binpack.weight", 1)
        self._nodes = view.nodes
        self._by_column = {
            column: weight
            for name, weight in resource_weights(self.arguments).items()
            if (column := view.columns.get(name)) is not None and column != PODS
        }
        return Hooks(scores=[Score("binpack", self._rate, reach=Reach.STATE)] if self._weight else [])

    def _rate(self, task: Task, rows: Rows) -> Floats:
        """Mean fullness; a resource the node does not have at all, or without weight, leaves the others their score."""
        allocatable, used = self._nodes.allocatable, self._nodes.used
        score, weights = np.zeros(len(rows)), 0
        fits = np.ones(len(rows), dtype=bool)
        for column, amount in task.shape.row_request:
            weight = self._by_column.get(column)
            if weight is None:
                continue
            room, taken = allocatable[rows, column], used[rows, column] + amount
            if weight:
                fits &= (taken <= room) | (room == 0.0)
            score += np.divide(taken * weight, room, out=np.zeros(len(rows)), where=room > 0.0)
            weights += weight
        if weights:
            score /= weights
        return np.where(fits, score * 100.0 * self._weight, 0.0)


def resource_weights(arguments: Arguments) -> dict[str, int]:
    """Weight by resource name; cpu and memory are always there. Negative weights count as 1."""
    listed = [name.strip() for name in policy.text(arguments, "binpack.resources", "").split(",")]
    names = [(name, f"binpack.resources.{name}") for name in listed if name]
    names += [("cpu", "binpack.cpu"), ("memory", "binpack.memory")]
    return {name: weight if (weight := policy.integer(arguments, key, 1)) >= 0 else 1 for name, key in names}
