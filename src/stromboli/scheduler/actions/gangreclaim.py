"""gangreclaim: room for a whole gang, from jobs of other queues (spec 05 section 15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stromboli.scheduler.actions.bundles import Compare
from stromboli.scheduler.actions.gang_eviction import Rules, evict_for_gangs
from stromboli.scheduler.actions.gangpreempt import job_allows
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.plugin import Eviction
from stromboli.scheduler.core.records import Job, Task
from stromboli.scheduler.core.statuses import TaskStatus


def gangreclaim(cycle: Cycle, arguments: Mapping[str, object]) -> None:
    """Evicts from other queues for the starving jobs of queues that may still grow."""
    evict_for_gangs(cycle, arguments, RULES)


def _may_go(cycle: Cycle, reclaimer: Job, task: Task) -> bool:
    queue = task.job.queue if task.job is not None else None
    return (
        task.job is not None
        and queue is not None
        and queue is not reclaimer.queue
        and queue.reclaimable
        and task.status == TaskStatus.RUNNING
        and task.preemptable
        and job_allows(task.job)
    )


def _order(cycle: Cycle, reclaimer: Job) -> Compare:
    """By the victims' queues, as seen from the reclaimer's."""

    def compare(left: Job, right: Job) -> int:
        if left.queue is None or right.queue is None or reclaimer.queue is None or left.queue is right.queue:
            return 0
        forwards = cycle.combination.victim_queue_compare(left.queue, right.queue, reclaimer.queue)
        backwards = cycle.combination.victim_queue_compare(right.queue, left.queue, reclaimer.queue)
        return 0 if (forwards < 0) == (backwards < 0) else forwards

    return compare


def _may_take(cycle: Cycle, job: Job, tasks: Sequence[Task]) -> bool:
    queue = job.queue
    if queue is None or cycle.combination.overused(queue):
        return False
    return cycle.combination.preemptive(queue, tasks)


RULES = Rules(Eviction.GANG_RECLAIM, _may_go, _order, _may_take)
