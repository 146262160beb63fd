"""Checks of jobs per role and per sub-group, and the rules for going on after a failure (spec 04 section 11)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stromboli.scheduler.core.records import Job, SubJob, Task
from stromboli.scheduler.core.statuses import READY_STATUSES, VALID_STATUSES, TaskStatus


def roles_valid(job: Job) -> bool:
    """Whether every role with a minimum has enough tasks that may count towards it."""
    return _roles_reach(job, VALID_STATUSES, empty_pending=False, skip_zero=True)


def roles_ready(job: Job) -> bool:
    """Whether every role has its minimum of tasks that hold resources, have succeeded or need none."""
    return _roles_reach(job, READY_STATUSES, empty_pending=True, skip_zero=False)


def roles_pipelined(job: Job) -> bool:
    """As ``roles_ready``, tasks that wait for resources counted as well."""
    return _roles_reach(job, READY_STATUSES | {TaskStatus.PIPELINED}, empty_pending=True, skip_zero=False)


def role_ready_count(job: Job, role: str) -> int:
    """Tasks of a role as ``roles_ready`` counts them."""
    return _count(job, role, READY_STATUSES) + job.role_pending_empty.get(role, 0)


def sub_groups_valid(job: Job) -> bool:
    """Whether every policy has as many sub-jobs as it asks for."""
    return _groups_reach(job, lambda sub_job: True)


def sub_groups_ready(job: Job) -> bool:
    """Whether every policy has as many ready sub-jobs as it asks for."""
    return _groups_reach(job, lambda sub_job: sub_job.is_ready)


def sub_groups_pipelined(job: Job) -> bool:
    """Whether every policy has as many pipelined sub-jobs as it asks for."""
    return _groups_reach(job, lambda sub_job: sub_job.is_pipelined)


def role_failed(sub_job: SubJob, task: Task) -> bool:
    """Whether a task of the same role and sub-job has found no node."""
    return bool(task.role) and task.role in sub_job.failed_roles


def may_go_on(sub_job: SubJob) -> bool:
    """Whether trying further tasks makes sense after one of the sub-job found no node."""
    job = sub_job.job
    if job.min_member == len(job.tasks) or sub_job.minimum >= len(sub_job.tasks):
        return False
    if job.has_sub_groups:
        return True
    if job.min_member < job.role_total:
        untried = sum(
            1
            for task in sub_job.tasks.values()
            if task.status == TaskStatus.PENDING and task.role not in sub_job.failed_roles
        )
        return job.ready_count + untried >= job.min_member
    return not any(
        minimum > 0 and role_ready_count(job, role) < minimum
        for role, minimum in job.role_minimums.items()
        if role in sub_job.failed_roles
    )


def _roles_reach(job: Job, statuses: Iterable[TaskStatus], *, empty_pending: bool, skip_zero: bool) -> bool:
    if job.min_member < job.role_total:
        return True
    for role, minimum in job.role_minimums.items():
        if skip_zero and minimum == 0:
            continue
        empty = job.role_pending_empty.get(role, 0) if empty_pending else 0
        if _count(job, role, statuses) + empty < minimum:
            return False
    return True


def _count(job: Job, role: str, statuses: Iterable[TaskStatus]) -> int:
    counts = job.role_counts.get(role)
    return sum(counts[status] for status in statuses) if counts is not None else 0


def _groups_reach(job: Job, counts: Callable[[SubJob], bool]) -> bool:
    if not job.sub_groups:
        return True
    reached = dict.fromkeys(job.sub_groups, 0)
    for sub_job in job.sub_jobs.values():
        if sub_job.group in reached and counts(sub_job):
            reached[sub_job.group] += 1
    return all(reached[group] >= minimum for group, minimum in job.sub_groups.items())
