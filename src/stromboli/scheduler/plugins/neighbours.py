"""Which pods are on which nodes, as far as affinity and spreading care (spec 06 sections 4.5, 17.5 and 17.6).

Pods are counted by shape: two pods of one shape match the same terms, so a term is held against each shape once and the
rest is arithmetic over ``[row]`` arrays. The counts follow the placements and evictions of the cycle. They are built
when first asked for: a cluster without affinity never pays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from stromboli.api import core, selectors
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.plugins import node_facts
from stromboli.scheduler.plugins.selecting import ABSENT

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Node, Shape, Task
    from stromboli.scheduler.core.view import View
    from stromboli.scheduler.plugins.selecting import NodeLabels

_NAME = "neighbours"

Counts = npt.NDArray[np.float64]
"""Per row, or per code of a label's value, a number of pods or a sum of weights."""


class Neighbours:
    """Counts of pods per shape and row. Call :meth:`placed` and :meth:`removed` from the plugin's accounting hooks."""

    def __init__(self, view: View, labels: NodeLabels) -> None:
        self._view = view
        self._labels = labels
        self._counts: dict[Shape, Counts] | None = None
        self._staying: dict[Shape, Counts] = {}
        self._evicted: set[str] = set()

    def placed(self, task: Task, node: Node) -> None:
        """A task was placed on a node in this cycle, or its eviction was undone."""
        self._evicted.discard(task.uid)
        if self._counts is not None:
            self._add(task, node.row, 1.0)

    def removed(self, task: Task, node: Node) -> None:
        """A task was evicted in this cycle, or its placement was undone."""
        if task.status == TaskStatus.RELEASING:
            self._evicted.add(task.uid)
        if self._counts is not None:
            self._add(task, node.row, -1.0)

    def shapes(self, wanted: Callable[[Shape], bool]) -> list[tuple[Shape, Counts]]:
        """The shapes on nodes that are ``wanted``, with their number of pods per row."""
        return [(shape, counts) for shape, counts in self._by_shape().items() if wanted(shape)]

    def per_row(self, wanted: Callable[[Shape], bool], *, staying: bool = False) -> Counts:
        """Pods per row whose shape is ``wanted``; with ``staying`` without those being deleted."""
        by_shape = self._by_shape()
        total = np.zeros(self._view.nodes.count)
        for shape, counts in (self._staying if staying else by_shape).items():
            if wanted(shape):
                total += counts
        return total

    def per_value(self, key: str, per_row: Counts) -> tuple[npt.NDArray[np.intp], Counts]:
        """Sums per value of a node label: (code of each row, sum of each code); rows without the label don't count."""
        codes, by_value = self._labels.column(key)
        has = codes != ABSENT
        sums = np.zeros(max(len(by_value), 1))
        np.add.at(sums, codes[has], per_row[has])
        return codes, sums

    def _by_shape(self) -> dict[Shape, Counts]:
        if self._counts is None:
            self._counts = {}
            for node in self._view.node_list:
                if node is not None:
                    for task in node.tasks.values():
                        if task.uid not in self._evicted:
                            self._add(task, node.row, 1.0)
        return self._counts

    def _add(self, task: Task, row: int, amount: float) -> None:
        assert self._counts is not None
        for table in (self._counts, self._staying) if not task.deleting else (self._counts,):
            counts = table.get(task.shape)
            if counts is None:
                counts = table[task.shape] = np.zeros(self._view.nodes.count)
            counts[row] += amount


def of(view: View) -> tuple[Neighbours, bool]:
    """The counts of this cycle, and whether the caller is the first to ask: the first one reports placements to it."""
    found = view.shared.get(_NAME)
    if isinstance(found, Neighbours):
        return found, False
    made = view.shared[_NAME] = Neighbours(view, node_facts.of(view).labels)
    return made, True


class TermMatcher:
    """Whether the pods of a shape are meant by an affinity term of another pod's."""

    def __init__(self, view: View) -> None:
        self._namespaces = view.objects.all(core.Namespace)

    def matches(self, term: core.PodAffinityTerm, owner: Shape, other: Shape) -> bool:
        """Whether ``term``, carried by a pod of shape ``owner``, matches pods of shape ``other``."""
        if not self._in_namespaces(term, owner.namespace, other.namespace):
            return False
        return selectors.matches_selector(term.label_selector, other.labels, absent=False)

    def _in_namespaces(self, term: core.PodAffinityTerm, owner: str, other: str) -> bool:
        if not term.namespaces and term.namespace_selector is None:
            return owner == other
        if other in term.namespaces:
            return True
        namespace = self._namespaces.get(("", other))
        labels = namespace.metadata.labels if namespace is not None else {}
        return selectors.matches_selector(term.namespace_selector, labels, absent=False)


def required_terms(shape: Shape, *, anti: bool) -> tuple[core.PodAffinityTerm, ...]:
    """Required (anti-)affinity terms of a shape's pods."""
    side = _side(shape, anti=anti)
    return side.required_during_scheduling_ignored_during_execution if side is not None else ()


def preferred_terms(shape: Shape) -> Iterator[tuple[float, core.PodAffinityTerm]]:
    """Preferred terms of a shape's pods with their weights, negative for anti-affinity."""
    for anti, sign in ((False, 1.0), (True, -1.0)):
        side = _side(shape, anti=anti)
        if side is not None:
            for weighted in side.preferred_during_scheduling_ignored_during_execution:
                yield sign * weighted.weight, weighted.pod_affinity_term


def _side(shape: Shape, *, anti: bool) -> core.PodAffinity | None:
    affinity = shape.pod.spec.affinity
    if affinity is None:
        return None
    return affinity.pod_anti_affinity if anti else affinity.pod_affinity
