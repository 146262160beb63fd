"""Hierarchical dominant-resource fairness: shares in a tree of queues with jobs as leaves (spec 06 section 8.2).

Every inner node keeps the vectors of its children as rows of arrays, so that a change of one job costs one small
reduction per level. Changes are noted by :meth:`FairTree.changed` and worked in when somebody next asks.

Two things are done better than in the original: a queue that does not say where it belongs stands below the root by its
own name, and weights that are missing count as 1 while those that cannot be read are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from stromboli.scheduler.core.columns import EPSILON, Floats
from stromboli.scheduler.core.records import Job, Queue
from stromboli.scheduler.core.tables import Bools

PATH = "volcano.sh/hierarchy"
WEIGHTS = "volcano.sh/hierarchy-weights"
SEPARATOR = "/"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a queue stands: names below the root, and the weight of each."""

    names: tuple[str, ...]
    weights: tuple[float, ...]


def place_of(queue: Queue, warn: Callable[[str], None]) -> Place:
    """Reads a queue's annotations; the first element of the path stands for the root."""
    annotations = queue.resource.metadata.annotations
    names = tuple(annotations.get(PATH, "").split(SEPARATOR)[1:]) or (queue.name,)
    words = annotations.get(WEIGHTS, "").split(SEPARATOR)[1:] if PATH in annotations else []
    weights = [_weight(queue, word, warn) for word in words[: len(names)]]
    return Place(names, tuple(weights + [1.0] * (len(names) - len(weights))))


def _weight(queue: Queue, word: str, warn: Callable[[str], None]) -> float:
    try:
        weight = float(word)
    except ValueError:
        warn(f"queue {queue.name}: annotation {WEIGHTS}: {word!r} is not a number; the weight counts as 1")
        return 1.0
    return weight if weight >= 1.0 else 1.0


def _warning(warn: Callable[[str, Queue], None], queue: Queue, text: str) -> None:
    warn(text, queue)


@dataclass(slots=True, eq=False)
class Branch:
    """An inner node. Its children are rows: sub-queues and jobs alike."""

    weight: float
    parent: Branch | None
    row: int
    """Its row among its parent's children."""
    below: dict[str, Branch] = field(default_factory=dict)
    count: int = 0
    allocated: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    share: Floats = field(default_factory=lambda: np.zeros(0))
    saturated: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    own_share: float = 0.0
    own_saturated: bool = True

    def take(self) -> int:
        """A row for one more child."""
        self.count += 1
        return self.count - 1


@dataclass(frozen=True, slots=True)
class Leaf:
    """A job's place in the tree; ``request`` over the columns of the tree is what its tasks ask for together."""

    job: Job
    branch: Branch
    row: int
    request: Floats


class FairTree:
    """The tree of one cycle, following ``job.allocated``."""

    def __init__(self, queues: Iterable[Queue], total: Floats, warn: Callable[[str, Queue], None]) -> None:
        self._columns = np.nonzero(total >= EPSILON)[0]
        self._total: Floats = total[self._columns]
        self._held: Floats = np.zeros(len(self._columns))
        self._root = Branch(1.0, None, 0)
        self._paths: dict[str, list[Branch]] = {}
        self._leaves: dict[str, Leaf] = {}
        self._counted: dict[str, Floats] = {}
        self._changed: dict[str, Leaf] = {}
        for queue in sorted(queues, key=lambda queue: queue.name):
            self._paths[queue.name] = self._plant(place_of(queue, partial(_warning, warn, queue)))
            for job in queue.jobs.values():
                self._hang(job, self._paths[queue.name][-1])
        self._allot(self._root)
        self._changed.update(self._leaves)

    def changed(self, job: Job) -> None:
        """Notes that a job holds more or less than before."""
        leaf = self._leaves.get(job.id)
        if leaf is not None:
            self._changed[job.id] = leaf

    def compare(self, left: Queue, right: Queue) -> int:
        """< 0 when the left queue is to be served first: level by level, unsaturated first, then smaller share."""
        self._refresh()
        for mine, other in zip(self._paths[left.name], self._paths[right.name], strict=False):
            verdict = _compare(mine, other)
            if verdict:
                return verdict
        return 0

    @contextmanager
    def imagined(self, job: Job, amount: Floats) -> Iterator[bool]:
        """The tree as if the job held so much more; the answer is False for a job that is not in the tree."""
        leaf = self._leaves.get(job.id)
        if leaf is None:
            yield False
            return
        self._refresh()
        before = leaf.branch.allocated[leaf.row].copy()
        self._set(leaf, before + amount[self._columns])
        try:
            yield True
        finally:
            self._set(leaf, before)

    # Building

    def _plant(self, place: Place) -> list[Branch]:
        path = [self._root]
        for name, weight in zip(place.names, place.weights, strict=True):
            parent = path[-1]
            branch = parent.below.get(name)
            if branch is None:
                branch = parent.below[name] = Branch(weight, parent, parent.take())
            path.append(branch)
        return path

    def _hang(self, job: Job, branch: Branch) -> None:
        request = sum((task.request for task in job.tasks.values()), start=np.zeros_like(job.allocated))
        self._leaves[job.id] = Leaf(job, branch, branch.take(), request[self._columns])

    def _allot(self, branch: Branch) -> None:
        branch.allocated = np.zeros((branch.count, len(self._columns)))
        branch.share = np.zeros(branch.count)
        branch.saturated = np.ones(branch.count, dtype=bool)
        for child in branch.below.values():
            self._allot(child)

    # Keeping current

    def _refresh(self) -> None:
        if not self._changed:
            return
        wanted_before = self._wanted()
        for leaf in self._changed.values():
            held = leaf.job.allocated[self._columns]
            self._held += held - self._counted.get(leaf.job.id, 0.0)
            self._counted[leaf.job.id] = held
        everyone = bool((wanted_before != self._wanted()).any())
        leaves = (self._leaves if everyone else self._changed).values()
        touched: dict[int, Branch] = {}
        for leaf in leaves:
            self._write(leaf, self._counted[leaf.job.id])
            touched[id(leaf.branch)] = leaf.branch
        self._changed.clear()
        for branch in touched.values():
            self._climb(branch)

    def _wanted(self) -> Bools:
        """Columns that the cluster has left to give."""
        return np.asarray(self._held < self._total)

    def _set(self, leaf: Leaf, allocated: Floats) -> None:
        self._write(leaf, allocated)
        self._climb(leaf.branch)

    def _write(self, leaf: Leaf, allocated: Floats) -> None:
        branch, row = leaf.branch, leaf.row
        branch.allocated[row] = allocated
        branch.share[row] = self._share(allocated)
        branch.saturated[row] = self._is_saturated(allocated, leaf.request)

    def _share(self, allocated: Floats) -> float:
        return float((allocated / self._total).max(initial=0.0))

    def _is_saturated(self, allocated: Floats, request: Floats) -> bool:
        """A job gets no further: it has all it wants of something, or something it holds and wants is used up."""
        concerned = (allocated >= EPSILON) & (request != 0.0)
        return bool((concerned & ((allocated >= request) | ~self._wanted())).any())

    def _climb(self, branch: Branch | None) -> None:
        while branch is not None:
            allocated = self._sum(branch)
            branch.own_share = self._share(allocated)
            branch.own_saturated = bool(branch.saturated.all())
            parent = branch.parent
            if parent is not None:
                parent.allocated[branch.row] = allocated
                parent.share[branch.row] = branch.own_share
                parent.saturated[branch.row] = branch.own_saturated
            branch = parent

    def _sum(self, branch: Branch) -> Floats:
        """What the children hold, those that may still grow scaled down to the smallest share among them."""
        holding = branch.share != 0.0
        growing = holding & ~branch.saturated
        smallest = branch.share[growing].min() if growing.any() else 1.0
        scale = np.where(growing, np.divide(smallest, branch.share, out=np.ones(branch.count), where=holding), 1.0)
        result: Floats = (branch.allocated[holding] * scale[holding, None]).sum(axis=0)
        return result


def _compare(left: Branch, right: Branch) -> int:
    if left is right:
        return 0
    mine = (left.own_saturated, left.own_share / left.weight)
    other = (right.own_saturated, right.own_share / right.weight)
    return (mine > other) - (mine < other)
