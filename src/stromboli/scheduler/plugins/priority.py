"""priority: the higher priority is served first and may preempt the lower (spec 06 section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from stromboli.scheduler.core.plugin import Depends, Eviction, EvictionContext, Hooks, Key, Order, Plugin, Victims, Vote

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Job, SubJob, Task
    from stromboli.scheduler.core.view import View


class Priority(Plugin):
    """Orders tasks, sub-jobs and jobs, and decides whom a priority may evict. It has no say in reclaim."""

    name: ClassVar[str] = "priority"

    def open(self, view: View) -> Hooks:
        return Hooks(
            task_order=Order(key=_first_the_highest, depends=Depends.NOTHING),
            job_order=Order(key=_first_the_highest, depends=Depends.NOTHING),
            sub_job_order=Order(key=_first_the_highest, depends=Depends.NOTHING),
            preemptable=_preemptable,
            unified_evictable=_unified_evictable,
            job_starving=_starving,
        )


def _first_the_highest(item: Task | Job | SubJob) -> Key:
    return (-item.priority,)


def _preemptable(preemptor: Task, candidates: Sequence[Task]) -> Victims:
    """In other jobs the jobs' priorities count, inside the preemptor's job the tasks'."""
    job = preemptor.job
    if job is None:
        return [], Vote.PERMIT
    victims = [
        task
        for task in candidates
        if task.job is not None
        and (task.priority < preemptor.priority if task.job is job else task.job.priority < job.priority)
    ]
    return victims, Vote.PERMIT


def _unified_evictable(context: EvictionContext, candidates: Sequence[Task]) -> Victims:
    if context.kind is Eviction.GANG_RECLAIM:
        return candidates, Vote.PERMIT
    threshold = context.job.priority
    # A candidate whose job is unknown is passed over; the original crashes on it.
    return [task for task in candidates if task.job is not None and task.job.priority < threshold], Vote.PERMIT


def _starving(job: Job) -> bool:
    """Even beyond its minimum a job starves while some of its tasks have no place."""
    return job.ready_count + job.waiting_count < len(job.tasks)
