"""enqueue: admits PodGroups, from Pending to Inqueue (spec 05 section 4).

One job per turn of its queue, so that queue order takes into account what plugins set aside for the jobs admitted so
far. A refused job does not block the others.
"""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.heaps import Heap
from stromboli.scheduler.core.records import Job, Phase


def enqueue(cycle: Cycle, arguments: Mapping[str, object]) -> None:
    """Admits what plugins let in."""
    queues = cycle.combination.queue_heap()
    waiting = _waiting(cycle)
    queues.push_all(cycle.view.queues[name] for name in waiting)
    while queues:
        queue = queues.pop()
        jobs = waiting[queue.name]
        if jobs:
            _consider(cycle, jobs.pop())
            queues.push(queue)


def _waiting(cycle: Cycle) -> dict[str, Heap[Job]]:
    waiting: dict[str, Heap[Job]] = {}
    for job in cycle.mirror.open_jobs():
        if job.is_pending and job.queue is not None:
            if job.queue.name not in waiting:
                waiting[job.queue.name] = cycle.combination.job_heap()
            waiting[job.queue.name].push(job)
    return waiting


def _consider(cycle: Cycle, job: Job) -> None:
    if job.min_resources is None or cycle.combination.job_enqueueable(job):
        cycle.combination.job_enqueued(job)
        cycle.set_phase(job, Phase.INQUEUE)
