"""What need not be told: that a gang waits, when all that is known is that its pods come or go one after the other.

A cycle decides by what is there when it looks, and says so of every gang that is not complete. Most of that is over
before anybody could read it. What a cycle says is therefore held against what the API server holds, and three things
are not written, nor told in events or to pods:

* of a gang that has now been placed: that it waited, unless that has been written before;
* of a gang whose pods are still coming, or in the same write as a new phase: it is decided anew, and told if it lasts;
* of a gang of which no pod waits: what it lacks are pods that have ended or been deleted, and no room would help.

Decisions and phases are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from stromboli.api import core
from stromboli.api.phases import PodGroupConditionType as Type
from stromboli.api.reasons import EventReason, EventType
from stromboli.scheduler.core import closing, readiness
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import Job
from stromboli.scheduler.core.results import CycleResult, PodGroupUpdate, PodUpdate
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.view import JobEvent

COMING_SECONDS = 3.0
"""The pods of an incomplete gang are still coming until so long after the latest of them was created."""

Known = Callable[[str], core.PodGroup | None]
"""A PodGroup as the API server is known to hold it, by ``namespace/name``."""


class Sparing:
    """Takes out of what cycles say what need not be told."""

    def __init__(self, mirror: Mirror, known: Known, *, is_busy: Callable[[str], bool]) -> None:
        self._mirror = mirror
        self._known = known
        self._is_busy = is_busy
        """Whether something is still to be written about a job, which a needless update must replace."""

    def spare(self, result: CycleResult, now: float) -> None:
        """Take out of the result what need not be told; the mirror is told of what is to be decided anew."""
        anew: set[str] = set()
        updates = (self._spared(update, result.session_id, now, anew) for update in result.pod_groups)
        result.pod_groups = [update for update in updates if update is not None]
        result.events = [event for event in result.events if not self._is_needless(event, now, anew)]
        quiet = {job_id for job_id in {pod.task.job_id for pod in result.pods} if self._is_quiet(job_id, now)}
        result.pods = [pod for pod in result.pods if pod.task.job_id not in quiet or not self._can_wait(pod)]
        for job_id in anew:
            self._mirror.said.forget(job_id)

    def _spared(self, update: PodGroupUpdate, session_id: str, now: float, anew: set[str]) -> PodGroupUpdate | None:
        job, known = self._mirror.jobs.get(update.job_id), self._known(update.job_id)
        if job is None or job.pod_group is None:
            return update
        before = known.status if known is not None and known.uid == update.uid else core.PodGroupStatus()
        if _decided(update.status, Type.SCHEDULED, session_id):
            status = kept = _as_told(update.status, before)
        elif not _decided(update.status, Type.UNSCHEDULABLE, session_id):
            return update
        elif is_over(job):
            status, kept = _as_told(update.status, before), update.status
        elif is_coming(job, now) or (before.phase != update.status.phase and _unschedulable(before) is None):
            status, kept = _as_told(update.status, before), _as_told(update.status, core.PodGroupStatus())
            anew.add(job.id)
        else:
            return update
        job.pod_group = core.PodGroup(metadata=job.pod_group.metadata, spec=job.pod_group.spec, status=kept)
        if closing.same_status(status, before) and not self._is_busy(job.id):
            return None
        return replace(update, status=status)

    def _is_needless(self, event: JobEvent, now: float, anew: set[str]) -> bool:
        if not is_warning(event):
            return False
        job = self._mirror.jobs.get(event.job_id)
        if job is None or job.pod_group is None or not job.tasks:
            return False
        return job.id in anew or is_over(job) or is_coming(job, now)

    def _is_quiet(self, job_id: str, now: float) -> bool:
        job = self._mirror.jobs.get(job_id)
        return job is not None and (is_over(job) or is_coming(job, now))

    def _can_wait(self, pod: PodUpdate) -> bool:
        if pod.nominated_node:
            return False
        task = self._mirror.jobs[pod.task.job_id].tasks.get(pod.task.uid)
        if task is not None:
            task.scheduled_condition = None  # so that the next cycle tells it, if it is still true then
        return True


def is_warning(event: JobEvent) -> bool:
    """Whether an event warns of a gang that waits."""
    return (event.type, event.reason) == (EventType.WARNING, EventReason.UNSCHEDULABLE)


def is_placed(update: PodGroupUpdate, session_id: str) -> bool:
    """Whether the cycle has found all that the gang needs."""
    return _decided(update.status, Type.SCHEDULED, session_id)


def is_over(job: Job) -> bool:
    """Whether the gang goes, or lacks only pods that are not there to be placed."""
    if job.pod_group is not None and job.pod_group.deleting:
        return True
    return bool(job.tasks) and not job.counts[TaskStatus.PENDING]


def is_coming(job: Job, now: float) -> bool:
    """Whether the gang has too few pods to be placed, and the latest has come just now."""
    if job.pod_group is None or job.queue is None or _is_there(job):
        return False
    latest = max((task.created for task in job.tasks.values()), default=0.0)
    return abs(now - latest) < COMING_SECONDS


def _is_there(job: Job) -> bool:
    return job.valid_count >= job.min_member and readiness.roles_valid(job) and readiness.sub_groups_valid(job)


def _decided(status: core.PodGroupStatus, type: str, session_id: str) -> bool:
    return any(
        one.type == type and one.status == "True" and one.transition_id == session_id for one in status.conditions
    )


def _unschedulable(status: core.PodGroupStatus) -> core.PodGroupCondition | None:
    return next((one for one in status.conditions if one.type == Type.UNSCHEDULABLE), None)


def _as_told(status: core.PodGroupStatus, before: core.PodGroupStatus) -> core.PodGroupStatus:
    """The status, but what it says about a gang that waits is what has been told of that before, if anything."""
    told = _unschedulable(before)
    others = [one for one in status.conditions if one.type != Type.UNSCHEDULABLE]
    at = next((at for at, one in enumerate(status.conditions) if one.type == Type.UNSCHEDULABLE), len(others))
    conditions = others if told is None else [*others[:at], told, *others[at:]]
    return msgspec.structs.replace(status, conditions=tuple(conditions))
