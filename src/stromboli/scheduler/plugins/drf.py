"""drf: the job with the smaller dominant share is served first (spec 06 section 8.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stromboli.scheduler.core.columns import EPSILON, Floats
from stromboli.scheduler.core.plugin import Hooks, Key, Order, Plugin, Victims, Vote

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Job, Task
    from stromboli.scheduler.core.view import View

TOLERANCE = 0.000001


class Drf(Plugin):
    """Dominant-resource fairness between jobs."""

    name: ClassVar[str] = "drf"

    def open(self, view: View) -> Hooks:
        self._columns = np.nonzero(view.total >= EPSILON)[0]
        self._total = view.total[self._columns]
        return Hooks(job_order=Order(key=self._key), preemptable=self._preemptable)

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
