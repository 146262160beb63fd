"""Inter-pod affinity as a filter and as a score (spec 06 sections 15.2 and 17.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.scheduler.core.plugin import Refusals
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.plugins.neighbours import TermMatcher, preferred_terms, required_terms
from stromboli.scheduler.plugins.selecting import ABSENT

if TYPE_CHECKING:
    from stromboli.api import core
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Shape, Task
    from stromboli.scheduler.core.tables import Bools, Rows
    from stromboli.scheduler.core.view import View
    from stromboli.scheduler.plugins.neighbours import Counts, Neighbours

AFFINITY = Reason("node(s) didn't match pod affinity rules", Code.UNRESOLVABLE)
ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules", Code.UNSCHEDULABLE)
EXISTING = Reason("node(s) didn't satisfy existing pods anti-affinity rules", Code.UNSCHEDULABLE)
REASONS = (AFFINITY, ANTI_AFFINITY, EXISTING)


class InterPodAffinity:
    """Answers for one cycle; ``neighbours`` follows the cycle's placements."""

    def __init__(self, view: View, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._matcher = TermMatcher(view)
        self._affine = view.affine_shapes

    def constrains(self, task: Task) -> bool:
        """Whether required terms, its own or those of other pods, bear on where the task goes."""
        shape = task.shape
        if required_terms(shape, anti=False) or required_terms(shape, anti=True):
            return True
        return any(
            self._matcher.matches(term, other, shape)
            for other in self._affine
            for term in required_terms(other, anti=True)
        )

    def prefers(self, task: Task) -> bool:
        """Whether preferred terms, its own or those of other pods, bear on where the task goes."""
        shape = task.shape
        if any(preferred_terms(shape)):
            return True
        return any(
            self._matcher.matches(term, other, shape) for other in self._affine for _, term in preferred_terms(other)
        )

    def refuse(self, task: Task, rows: Rows) -> Refusals | None:
        """The first broken rule of each row: affinity, own anti-affinity, anti-affinity of pods already there."""
        shape = task.shape
        near, away = required_terms(shape, anti=False), required_terms(shape, anti=True)
        repelled = self._repelled(shape, rows)
        if not near and not away and repelled is None:
            return None
        result = np.zeros(len(rows), dtype=np.uint8)
        if repelled is not None:
            result[repelled] = 3
        if away:
            result[self._too_near(shape, away, rows)] = 2
        if near:
            result[~self._near_enough(shape, near, rows)] = 1
        return result

    def rate(self, task: Task, rows: Rows) -> Floats | None:
        """Raw sums of weights per row; None when no preference touches any pod."""
        shape = task.shape
        score, touched = np.zeros(len(rows)), False
        for weight, term in preferred_terms(shape):
            counts = self._neighbours.per_row(lambda other, term=term: self._matcher.matches(term, shape, other))  # type: ignore[misc]
            touched |= self._weigh(score, rows, term, counts, weight)
        for other, counts in self._neighbours.shapes(lambda other: other.pod.spec.affinity is not None):
            for weight, term in preferred_terms(other):
                if self._matcher.matches(term, other, shape):
                    touched |= self._weigh(score, rows, term, counts, weight)
        return score if touched else None

    def _weigh(self, score: Floats, rows: Rows, term: core.PodAffinityTerm, counts: Counts, weight: float) -> bool:
        codes, sums = self._neighbours.per_value(term.topology_key, counts)
        mine = codes[rows]
        score += np.where(mine != ABSENT, sums[mine] * weight, 0.0)
        return bool(sums.any())

    def _repelled(self, shape: Shape, rows: Rows) -> Bools | None:
        result: Bools | None = None
        for other, counts in self._neighbours.shapes(lambda other: bool(required_terms(other, anti=True))):
            for term in required_terms(other, anti=True):
                if self._matcher.matches(term, other, shape):
                    there = self._some(term.topology_key, counts, rows)
                    result = there if result is None else result | there
        return result

    def _too_near(self, shape: Shape, terms: tuple[core.PodAffinityTerm, ...], rows: Rows) -> Bools:
        result = np.zeros(len(rows), dtype=bool)
        for term in terms:
            counts = self._neighbours.per_row(lambda other, term=term: self._matcher.matches(term, shape, other))  # type: ignore[misc]
            result |= self._some(term.topology_key, counts, rows)
        return result

    def _near_enough(self, shape: Shape, terms: tuple[core.PodAffinityTerm, ...], rows: Rows) -> Bools:
        """Rows where every term finds a pod, or all rows with the labels for the first pod of a self-affine group."""
        counts = self._neighbours.per_row(
            lambda other: all(self._matcher.matches(term, shape, other) for term in terms)
        )
        labelled, found, anywhere = np.ones(len(rows), dtype=bool), np.ones(len(rows), dtype=bool), False
        for term in terms:
            codes, sums = self._neighbours.per_value(term.topology_key, counts)
            mine = codes[rows]
            labelled &= mine != ABSENT
            found &= (mine != ABSENT) & (sums[mine] > 0.0)
            anywhere |= bool(sums.any())
        if not anywhere and all(self._matcher.matches(term, shape, shape) for term in terms):
            return labelled
        return found

    def _some(self, key: str, counts: Counts, rows: Rows) -> Bools:
        codes, sums = self._neighbours.per_value(key, counts)
        mine = codes[rows]
        result: Bools = (mine != ABSENT) & (sums[mine] > 0.0)
        return result


def stretched(raw: Floats) -> Floats:
    """Scores stretched to whole numbers from 0 to 100; all equal gives 0."""
    if not len(raw):
        return raw
    low, high = raw.min(), raw.max()
    if high == low:
        return np.zeros_like(raw)
    scores: Floats = np.trunc(100.0 * (raw - low) / (high - low))
    return scores
