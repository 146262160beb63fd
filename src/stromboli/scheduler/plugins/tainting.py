"""Taints and tolerations over many nodes at once (spec 06 sections 15.2 and 17.2).

Nodes with equal taints share a class, so a shape's tolerations are held against each class once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from stromboli.api import core
    from stromboli.scheduler.core.records import Node
    from stromboli.scheduler.core.tables import Bools, Rows

Taints = tuple["core.Taint", ...]
REPELLING = frozenset({"NoSchedule", "NoExecute"})
PREFER_NO_SCHEDULE = "PreferNoSchedule"


class NodeTaints:
    """The taints of all nodes in this cycle, by class."""

    def __init__(self, node_list: Sequence[Node | None]) -> None:
        classes: dict[Taints, int] = {(): 0}
        codes = [classes.setdefault(node.taints, len(classes)) if node else 0 for node in node_list]
        self._classes = list(classes)
        self._codes: npt.NDArray[np.intp] = np.array(codes, dtype=np.intp)
        self.repel = any(taint.effect in REPELLING for taints in self._classes for taint in taints)
        """Whether any node has a taint that keeps pods off."""
        self.discourage = any(taint.effect == PREFER_NO_SCHEDULE for taints in self._classes for taint in taints)
        """Whether any node has a taint that only counts in scores."""

    def untolerated(self, tolerations: Sequence[core.Toleration], rows: Rows) -> Bools:
        """Rows with a NoSchedule or NoExecute taint that is not tolerated."""
        refused = [
            any(taint.effect in REPELLING and not tolerates(tolerations, taint) for taint in taints)
            for taints in self._classes
        ]
        result: Bools = np.array(refused, dtype=bool)[self._codes[rows]]
        return result

    def intolerable_preferences(self, tolerations: Sequence[core.Toleration], rows: Rows) -> npt.NDArray[np.float64]:
        """Per row the number of PreferNoSchedule taints that are not tolerated."""
        mine = [toleration for toleration in tolerations if toleration.effect in ("", PREFER_NO_SCHEDULE)]
        counts = [
            sum(taint.effect == PREFER_NO_SCHEDULE and not tolerates(mine, taint) for taint in taints)
            for taints in self._classes
        ]
        result: npt.NDArray[np.float64] = np.array(counts, dtype=np.float64)[self._codes[rows]]
        return result


def tolerates(tolerations: Sequence[core.Toleration], taint: core.Taint) -> bool:
    """Whether some toleration accepts the taint."""
    return any(_accepts(toleration, taint) for toleration in tolerations)


def _accepts(toleration: core.Toleration, taint: core.Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.operator in ("", "Equal") and toleration.value == taint.value
