"""Minimums inside a gang: of each task role and of each sub-group (spec 04 section 11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from stromboli.scheduler.core.statuses import READY_STATUSES, VALID_STATUSES, TaskStatus

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Job, SubJob


def roles_valid(job: Job) -> bool:
    """Whether every role has enough tasks that hold, have used, wait for or may get resources."""
    return _roles(job, VALID_STATUSES, best_effort=False)


def roles_ready(job: Job) -> bool:
    """Whether every role has enough tasks that hold resources, have succeeded or need none."""
    return _roles(job, READY_STATUSES, best_effort=True)


def roles_pipelined(job: Job) -> bool:
    """As :func:`roles_ready`, counting tasks that wait for resources being released as well."""
    return _roles(job, READY_STATUSES | {TaskStatus.PIPELINED}, best_effort=True)


def sub_groups_valid(job: Job) -> bool:
    """Whether every sub-group policy has formed as many groups as it wants at least."""
    return _sub_groups(job, lambda _sub_job: True)


def sub_groups_ready(job: Job) -> bool:
    """Whether every sub-group policy has enough groups that meet their own minimum."""
    return _sub_groups(job, lambda sub_job: sub_job.is_ready)


def sub_groups_pipelined(job: Job) -> bool:
    """As :func:`sub_groups_ready`, counting tasks that wait for resources being released as well."""
    return _sub_groups(job, lambda sub_job: sub_job.is_pipelined)


def _roles(job: Job, statuses: Collection[TaskStatus], *, best_effort: bool) -> bool:
    """A ``minMember`` below the sum of the roles' minimums turns these checks off (quirk, kept)."""
    if job.min_member < job.role_total:
        return True
    for role, minimum in job.role_minimums.items():
        counts = job.role_counts.get(role)
        have = sum(counts[status] for status in statuses) if counts else 0
        if best_effort:
            have += job.role_pending_empty.get(role, 0)
        if have < minimum:
            return False
    return True


def _sub_groups(job: Job, holds: Callable[[SubJob], bool]) -> bool:
    if not job.sub_groups:
        return True
    good = Counter(sub_job.group for sub_job in job.sub_jobs.values() if holds(sub_job))
    return all(good[group] >= minimum for group, minimum in job.sub_groups.items())
