"""overcommit: bounds the work admitted to a multiple of the cluster (spec 06 section 11).

Two things differ from the original. Promises to jobs of lower priority that wait in vain do not keep a job out. And a
job with which its queue stays within what it deserves or is guaranteed is admitted even when the cluster is full: only
an admitted job can take back what others have borrowed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stromboli.api.reasons import WaitReason, advice
from stromboli.scheduler.core import policy
from stromboli.scheduler.core.plugin import Hooks, Plugin, Vote
from stromboli.scheduler.plugins import arguments, queue_quotas, reservations

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Job, Queue
    from stromboli.scheduler.core.view import View

DEFAULT_FACTOR = 1.2


class Promises:
    """What admitted jobs are promised, by priority and by queue, with what they have as the cycle opens left out.

    Summed up when first asked for, and the same whenever that is.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._at_opening: Floats = reservations.admitted_in_full(view)
        self._sum: Floats | None = None
        self._in_vain: dict[int, Floats] = {}
        """By priority, to jobs that wait in vain."""
        self._by_queue: defaultdict[str, Floats] = defaultdict(lambda: np.zeros(view.columns.width))

    def before(self, job: Job) -> Floats:
        """All promises but those to jobs of lower priority that wait in vain."""
        promised = self._summed()
        for priority, amount in self._in_vain.items():
            if priority < job.priority:
                promised = promised - amount
        return promised

    def to_queue(self, queue: Queue) -> Floats:
        """Promises to the jobs of one queue."""
        self._summed()
        return self._by_queue[queue.name]

    def add(self, job: Job) -> None:
        """A job was admitted."""
        if job.min_resources is not None:
            self._summed()
            self._add(job, reservations.without_gated(job))

    def _summed(self) -> Floats:
        if self._sum is None:
            self._sum = np.zeros(self._view.columns.width)
            amounts = self._at_opening
            promised = np.asarray(amounts.any(axis=1))
            for job in self._view.jobs.values() if promised.any() else ():
                if promised[job.row]:
                    self._add(job, amounts[job.row])
        return self._sum

    def _add(self, job: Job, amount: Floats) -> None:
        self._sum = amount + (0.0 if self._sum is None else self._sum)
        self._by_queue[job.queue_name] = self._by_queue[job.queue_name] + amount
        if reservations.waits_in_vain(job):
            self._in_vain[job.priority] = self._in_vain.get(job.priority, 0.0) + amount


class Overcommit(Plugin):
    """Votes on admission only."""

    name: ClassVar[str] = "overcommit"
    arguments_model = arguments.model("OvercommitArguments", **{"overcommit-factor": arguments.Number})

    def open(self, view: View) -> Hooks:
        self._view = view
        factor = policy.number(self.arguments, "overcommit-factor", DEFAULT_FACTOR)
        self._factor = factor if factor >= 1.0 else DEFAULT_FACTOR
        self._limit: Floats = view.total * self._factor
        self._used: Floats = view.nodes.total(view.nodes.used)
        self._promises = Promises(view)
        return Hooks(job_enqueueable=self._enqueueable, job_enqueued=self._promises.add)

    def _enqueueable(self, job: Job) -> Vote:
        wanted = job.min_resources
        if wanted is None:
            return Vote.PERMIT
        promised = self._promises.before(job)
        lacking = reservations.exceeded_names(self._view, promised + wanted, self._limit - self._used, wanted)
        if not lacking or self._is_entitled(job, wanted):
            return Vote.PERMIT
        text = ", ".join(f"overused {name}" for name in lacking)
        self._view.refuse(job, "ClusterOvercommitted", self._sentence(wanted, lacking, promised))
        self._view.report(job, "Unschedulable", f"resource in cluster is overused: {text}")
        return Vote.REJECT

    def _is_entitled(self, job: Job, wanted: Floats) -> bool:
        """Whether the queue, with the job, stays within what it deserves or is guaranteed."""
        queue = job.queue
        if queue is None or not (queue.resource.spec.deserved or queue.resource.spec.guarantee.resource):
            return False
        spec = queue.resource.spec
        due = np.maximum(queue_quotas.deserved_of(spec, self._view), queue_quotas.guarantee_of(spec, self._view))
        total = queue.allocated + queue.elsewhere + self._promises.to_queue(queue) + wanted
        return not reservations.exceeded_names(self._view, total, due, wanted)

    def _sentence(self, wanted: Floats, lacking: list[str], promised: Floats) -> str:
        found = reservations.shortages(self._view, lacking, wanted, self._limit, self._used + promised)
        holder = f"the cluster admits {{limit}} ({self._factor:g} times its size)"
        numbers = reservations.for_group(found, holder)
        return f"{numbers}. {advice(WaitReason.CLUSTER_OVERCOMMITTED, in_vain=reservations.is_lasting(found))}"
