"""What is left to place of a job: Pending tasks per sub-job, in order (spec 05 section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.scheduler.core.combining import Combination
from stromboli.scheduler.core.records import Job, SubJob, Task
from stromboli.scheduler.core.statuses import TaskStatus


@dataclass(slots=True)
class Work:
    """Tasks of one sub-job; the next one is the last of the list."""

    sub_job: SubJob
    tasks: list[Task]
    required: bool = False


class Worksheet:
    """Work by sub-job: those that the job needs in order to be ready first, then in sub-job order."""

    def __init__(self, combination: Combination, works: list[Work]) -> None:
        self._combination = combination
        self._works = works

    def __bool__(self) -> bool:
        return bool(self._works)

    def copy(self) -> Worksheet:
        """An independent worksheet over the same tasks."""
        works = [Work(work.sub_job, list(work.tasks), work.required) for work in self._works]
        return Worksheet(self._combination, works)

    def only(self) -> SubJob | None:
        """The sub-job that all work is for, if there is just one."""
        return self._works[0].sub_job if len(self._works) == 1 else None

    def works(self) -> list[Work]:
        """All work, in the present order."""
        return sorted(self._works, key=self._key)

    def pop(self) -> Work:
        """Takes out the work that comes first now."""
        first = min(self._works, key=self._key)
        self._works.remove(first)
        return first

    def push(self, work: Work) -> None:
        """Puts work back, unless nothing is left of it."""
        if work.tasks:
            self._works.append(work)

    def _key(self, work: Work) -> tuple[object, ...]:
        return (not work.required, *self._combination.sub_job_ordering.key(work.sub_job))


def worksheet(combination: Combination, job: Job, *, queue_gated: bool) -> Worksheet:
    """The Pending tasks of a job that request something; gated ones only with ``queue_gated``, see section 5.2."""
    if not job.counts[TaskStatus.PENDING]:
        return Worksheet(combination, [])
    required = _required(combination, job)
    works = []
    for sub_job in job.sub_jobs.values():
        tasks = [task for task in sub_job.tasks.values() if _is_work(task, queue_gated=queue_gated)]
        if tasks:
            tasks.sort(key=combination.task_ordering.key, reverse=True)
            works.append(Work(sub_job, tasks, sub_job.id in required))
    return Worksheet(combination, works)


def _is_work(task: Task, *, queue_gated: bool) -> bool:
    if task.status != TaskStatus.PENDING or task.best_effort:
        return False
    return not task.gated or (queue_gated and task.queue_gate_only)


def _required(combination: Combination, job: Job) -> set[str]:
    """Sub-jobs without which a group does not get its ``minSubGroups``."""
    if not job.sub_groups:
        return set()
    ready: dict[str, int] = {}
    missing: list[SubJob] = []
    for sub_job in job.sub_jobs.values():
        if combination.sub_job_ready(sub_job):
            ready[sub_job.group] = ready.get(sub_job.group, 0) + 1
        else:
            missing.append(sub_job)
    required: set[str] = set()
    for sub_job in combination.sub_job_ordering.sorted(missing):
        if ready.get(sub_job.group, 0) < job.sub_groups.get(sub_job.group, 0):
            required.add(sub_job.id)
            ready[sub_job.group] = ready.get(sub_job.group, 0) + 1
    return required
