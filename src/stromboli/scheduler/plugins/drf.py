"""drf: the job with the smaller dominant share is served first; queues likewise in a hierarchy (spec 06 section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stromboli.scheduler.core.columns import EPSILON, Floats
from stromboli.scheduler.core.plugin import Depends, Hooks, Key, Order, Plugin, Victims, Vote
from stromboli.scheduler.plugins.fair_tree import FairTree

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Job, Node, Queue, Task
    from stromboli.scheduler.core.view import View

TOLERANCE = 0.000001


class Drf(Plugin):
    """Dominant-resource fairness between jobs."""

    name: ClassVar[str] = "drf"

    def open(self, view: View) -> Hooks:
        self._view = view
        self._columns = np.nonzero(view.total >= EPSILON)[0]
        self._total = view.total[self._columns]
        hooks = Hooks(job_order=Order(key=self._key), preemptable=self._preemptable, close=self._close)
        if view.hierarchy.get(self.name):
            self._tree = FairTree(view.queues.values(), view.total, view.warn)
            hooks.queue_order = Order(compare=self._tree.compare, depends=Depends.OTHERS)
            hooks.reclaimable = self._reclaimable
            hooks.on_allocate = hooks.on_deallocate = self._moved
        return hooks

    def share(self, allocated: Floats) -> float:
        """The largest part of any of the cluster's resources in ``allocated``."""
        if not len(self._columns):
            return 0.0
        return float((allocated[self._columns] / self._total).max())

    def _key(self, job: Job) -> Key:
        return (self.share(job.allocated),)

    def _preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> Victims:
        """A candidate goes while its job, without it and those before it, still has at least the preemptor's share."""
        if preemptor.job is None:
            return [], Vote.PERMIT
        mine = self.share(preemptor.job.allocated + preemptor.request)
        left: dict[str, Floats] = {}
        victims: list[Task] = []
        for task in candidates:
            if task.job is None:
                continue
            remaining = left.setdefault(task.job.id, task.job.allocated.copy())
            remaining -= task.request
            theirs = self.share(remaining)
            if mine < theirs or abs(mine - theirs) <= TOLERANCE:
                victims.append(task)
        return victims, Vote.PERMIT

    def _moved(self, task: Task, _node: Node) -> None:
        if task.job is not None:
            self._tree.changed(task.job)

    def _reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> Victims:
        """A candidate goes when, with it gone and the reclaimer in, the reclaimer's queue would still come first."""
        job = reclaimer.job
        if job is None or job.queue is None:
            return [], Vote.PERMIT
        with self._tree.imagined(job, reclaimer.request) as known:
            victims = [task for task in candidates if known and self._yields(job.queue, task)]
        return victims, Vote.PERMIT

    def _yields(self, queue: Queue, task: Task) -> bool:
        job = task.job
        if job is None or job.queue is None:
            return False
        with self._tree.imagined(job, -task.request) as known:
            return known and self._tree.compare(queue, job.queue) < 0

    def _close(self) -> None:
        for job in self._view.unsettled():
            self._view.measure("job_share", self.share(job.allocated), job_ns=job.namespace, job_id=job.name)
