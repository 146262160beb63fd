"""gangpreempt: room for a whole gang, from less important jobs of its queue (spec 05 section 14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stromboli.api import names
from stromboli.scheduler.actions.bundles import Compare
from stromboli.scheduler.actions.gang_eviction import Rules, evict_for_gangs
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.plugin import Eviction
from stromboli.scheduler.core.records import Job, Task
from stromboli.scheduler.core.statuses import EVICTABLE_STATUSES


def gangpreempt(cycle: Cycle, arguments: Mapping[str, object]) -> None:
    """Evicts for the starving jobs of every queue, within the queue."""
    evict_for_gangs(cycle, arguments, RULES)


def job_allows(job: Job) -> bool:
    """Whether a job lets its tasks be evicted: only a PodGroup that says no does not."""
    said = names.PREEMPTABLE in job.annotations or names.PREEMPTABLE in job.labels
    return job.preemptable if said else True


def _may_go(cycle: Cycle, preemptor: Job, task: Task) -> bool:
    job = task.job
    return (
        job is not None
        and job is not preemptor
        and job.queue is preemptor.queue
        and task.status in EVICTABLE_STATUSES
        and task.preemptable
        and job_allows(job)
        and preemptor.priority > job.priority
    )


def _order(cycle: Cycle, preemptor: Job) -> Compare:
    """The job served last goes first."""
    key = cycle.combination.job_ordering.key

    def compare(left: Job, right: Job) -> int:
        mine, other = key(left), key(right)
        return (mine < other) - (mine > other)

    return compare


def _may_take(cycle: Cycle, job: Job, tasks: Sequence[Task]) -> bool:
    return True


RULES = Rules(Eviction.GANG_PREEMPT, _may_go, _order, _may_take)
