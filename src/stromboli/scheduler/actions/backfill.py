"""backfill: places best-effort tasks wherever filters let them (spec 05 section 10).

Queue limits, topology and nominated nodes play no part. Tasks of a job that does not become ready are forgotten with
the cycle.
"""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.fit_errors import FitErrors
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.records import Job, Task
from stromboli.scheduler.core.statuses import TaskStatus


def backfill(cycle: Cycle, arguments: Mapping[str, object]) -> None:
    """Places every best-effort task that can be placed."""
    by_queue: dict[str, list[Job]] = {}
    for job in cycle.mirror.open_jobs():
        if job.queue is not None and not job.is_pending and _has_best_effort(job) and cycle.valid(job):
            by_queue.setdefault(job.queue.name, []).append(job)
    tasks = {job.id: _tasks(cycle, job) for jobs in by_queue.values() for job in jobs}
    for queue in cycle.combination.queue_ordering.sorted(cycle.view.queues[name] for name in by_queue):
        jobs = cycle.combination.job_heap()
        jobs.push_all(by_queue[queue.name])
        while jobs:
            for task in cycle.combination.task_ordering.sorted(tasks[jobs.pop().id]):
                _place(cycle, task)


def _has_best_effort(job: Job) -> bool:
    return bool(job.pending_best_effort or job.counts[TaskStatus.PIPELINED])


def _tasks(cycle: Cycle, job: Job) -> list[Task]:
    chosen = []
    for task in job.tasks.values():
        if not task.best_effort:
            continue
        if task.status == TaskStatus.PIPELINED:
            cycle.journal.unplace(task)
            chosen.append(task)
        elif task.status == TaskStatus.PENDING and not task.gated:
            chosen.append(task)
    return chosen


def _place(cycle: Cycle, task: Task) -> None:
    error = cycle.combination.prepare(task)
    if error is not None:
        cycle.record(task, FitErrors.everywhere(int(cycle.view.nodes.live.sum()), error))
        return
    evaluation = cycle.searches.of(task)
    row = evaluation.best_of(evaluation.feasible(None, resources=False), cycle.random)
    if row is None:
        cycle.record(task, evaluation.errors(None, "", resources=False))
        return
    node = cycle.view.node_list[row]
    assert node is not None and task.job is not None
    try:
        cycle.journal.place(task, node, TaskStatus.ALLOCATED)
    except PlacementRefused as refusal:
        cycle.record(task, FitErrors(1, {str(refusal): 1}))
        return
    if cycle.combination.job_ready(task.job):
        _bind_allocated(cycle, task.job)


def _bind_allocated(cycle: Cycle, job: Job) -> None:
    for task in [task for task in job.tasks.values() if task.status == TaskStatus.ALLOCATED]:
        cycle.journal.bind(task)
