"""Topology spread constraints as a filter and as a score (spec 06 sections 15.2 and 17.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import core, selectors
from stromboli.scheduler.core.plugin import Refusals
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.plugins import default_spreading
from stromboli.scheduler.plugins.selecting import ABSENT

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Shape, Task
    from stromboli.scheduler.core.tables import Bools, Rows
    from stromboli.scheduler.core.view import View
    from stromboli.scheduler.plugins.neighbours import Counts, Neighbours
    from stromboli.scheduler.plugins.selecting import NodeLabels
    from stromboli.scheduler.plugins.tainting import NodeTaints

SKEWED = Reason("node(s) didn't match pod topology spread constraints", Code.UNSCHEDULABLE)
UNLABELLED = Reason("node(s) didn't match pod topology spread constraints (missing required label)", Code.UNRESOLVABLE)
REASONS = (SKEWED, UNLABELLED)
MUST, SHOULD = "DoNotSchedule", "ScheduleAnyway"


class TopologySpread:
    """Answers for one cycle; ``neighbours`` follows the cycle's placements."""

    def __init__(self, view: View, labels: NodeLabels, taints: NodeTaints, neighbours: Neighbours) -> None:
        self._view = view
        self._labels = labels
        self._taints = taints
        self._neighbours = neighbours
        self._defaults = default_spreading.of(view)

    def constrains(self, task: Task) -> bool:
        """Whether the task's pod has constraints that must hold."""
        return bool(_constraints(task.shape, MUST))

    def prefers(self, task: Task) -> bool:
        """Whether constraints should hold for the task's pod, its own or the defaults."""
        return bool(self._preferences(task.shape))

    def _preferences(self, shape: Shape) -> list[core.TopologySpreadConstraint]:
        if shape.pod.spec.topology_spread_constraints:
            return _constraints(shape, SHOULD)
        return self._defaults.constraints(shape)

    def refuse(self, task: Task, rows: Rows) -> Refusals | None:
        """Rows that lack a label, or where one more pod would make the spread too uneven."""
        shape = task.shape
        constraints = _constraints(shape, MUST)
        if not constraints:
            return None
        result = np.zeros(len(rows), dtype=np.uint8)
        everywhere = self._labelled(constraints)
        for constraint in constraints:
            verdict = self._verdict(shape, constraint, everywhere, rows)
            result = np.where(result == 0, verdict, result)
        return result

    def rate(self, task: Task, rows: Rows) -> Floats | None:
        """Raw crowding per row, NaN for rows that lack a label; fewer is better. None without constraints."""
        shape = task.shape
        constraints = self._preferences(shape)
        if not constraints:
            return None
        own = bool(shape.pod.spec.topology_spread_constraints)
        counted = self._labelled(constraints) if own else self._view.nodes.live
        score = np.zeros(len(rows))
        for constraint in constraints:
            codes, _ = self._labels.column(constraint.topology_key)
            mine, has = codes[rows], codes[rows] != ABSENT
            counts = self._counts(shape, constraint, counted & self._admitted(shape, constraint))
            _, sums = self._neighbours.per_value(constraint.topology_key, counts)
            domains = len(np.unique(mine[has & counted[rows]]))
            score += np.where(has, sums[mine] * np.log(domains + 2) + (constraint.max_skew - 1), 0.0)
        return np.where(counted[rows], np.round(score), np.nan)

    def _verdict(
        self, shape: Shape, constraint: core.TopologySpreadConstraint, labelled: Bools, rows: Rows
    ) -> Refusals:
        codes, _ = self._labels.column(constraint.topology_key)
        eligible = labelled & self._admitted(shape, constraint)
        counts = self._counts(shape, constraint, eligible)
        _, sums = self._neighbours.per_value(constraint.topology_key, counts)
        domains = np.unique(codes[eligible])
        enough = len(domains) >= (constraint.min_domains or 1)
        least = float(sums[domains].min()) if len(domains) and enough else 0.0
        mine = codes[rows]
        there = np.where(np.isin(mine, domains), sums[mine], 0.0)
        own = 1.0 if _matches(constraint, shape, shape) else 0.0
        verdict = (there + own - least > constraint.max_skew).astype(np.uint8)
        verdict[mine == ABSENT] = 2
        return verdict

    def _counts(self, shape: Shape, constraint: core.TopologySpreadConstraint, eligible: Bools) -> Counts:
        """Per row the pods of the shape's namespace that match, on eligible rows, those being deleted left out."""
        counts = self._neighbours.per_row(
            lambda other: other.namespace == shape.namespace and _matches(constraint, shape, other), staying=True
        )
        return np.where(eligible, counts, 0.0)

    def _labelled(self, constraints: list[core.TopologySpreadConstraint]) -> Bools:
        result = self._view.nodes.live.copy()
        for constraint in constraints:
            result &= self._labels.column(constraint.topology_key)[0] != ABSENT
        return result

    def _admitted(self, shape: Shape, constraint: core.TopologySpreadConstraint) -> Bools:
        """Rows that the constraint's node inclusion policies count."""
        rows = np.arange(self._view.nodes.count)
        result = np.ones(len(rows), dtype=bool)
        spec = shape.pod.spec
        if (constraint.node_affinity_policy or "Honor") == "Honor":
            result &= self._labels.admits(spec, rows)
        if constraint.node_taints_policy == "Honor":
            result &= ~self._taints.untolerated(spec.tolerations, rows)
        return result


def crowded_last(raw: Floats) -> Floats:
    """Scores from 100 (least crowded) downwards; rows without a label get 0."""
    ignored = np.isnan(raw)
    if ignored.all():
        return np.zeros_like(raw)
    low, high = np.nanmin(raw), np.nanmax(raw)
    scores = np.full_like(raw, 100.0) if high == 0.0 else np.trunc(100.0 * (high + low - raw) / high)
    return np.where(ignored, 0.0, scores)


def _constraints(shape: Shape, when: str) -> list[core.TopologySpreadConstraint]:
    constraints = shape.pod.spec.topology_spread_constraints
    return [constraint for constraint in constraints if constraint.when_unsatisfiable == when]


def _matches(constraint: core.TopologySpreadConstraint, owner: Shape, other: Shape) -> bool:
    """Whether a pod counts; an empty selector counts nothing."""
    selector = constraint.label_selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return False
    same = all(other.labels.get(key) == owner.labels[key] for key in constraint.match_label_keys if key in owner.labels)
    return same and selectors.matches_selector(selector, other.labels, absent=False)
