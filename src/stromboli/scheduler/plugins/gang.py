"""gang: all or nothing (spec 06 section 5, spec 04 sections 11 and 29.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from stromboli.scheduler.core import fit_errors, readiness
from stromboli.scheduler.core.plugin import Hooks, Invalid, Key, Order, Plugin, Victims, Vote
from stromboli.scheduler.core.view import Condition

if TYPE_CHECKING:
    from stromboli.scheduler.core.plugin import EvictionContext
    from stromboli.scheduler.core.records import Job, SubJob, Task
    from stromboli.scheduler.core.view import View

UNSCHEDULABLE, SCHEDULED = "Unschedulable", "Scheduled"
NOT_ENOUGH_RESOURCES = "NotEnoughResources"
READY_REASON = "tasks in gang are ready to be scheduled"


class Gang(Plugin):
    """Decides when a gang is complete, protects minimums from eviction, and says at the end what is missing."""

    name: ClassVar[str] = "gang"

    def open(self, view: View) -> Hooks:
        self._view = view
        return Hooks(
            job_valid=_valid,
            job_order=Order(key=_incomplete_first),
            sub_job_order=Order(key=_incomplete_first),
            job_ready=_ready,
            sub_job_ready=lambda sub_job: sub_job.is_ready,
            job_pipelined=_pipelined,
            sub_job_pipelined=lambda sub_job: Vote.PERMIT if sub_job.is_pipelined else Vote.REJECT,
            job_starving=lambda job: job.is_starving,
            preemptable=lambda _preemptor, candidates: surplus(candidates),
            reclaimable=lambda _reclaimer, candidates: surplus(candidates),
            unified_evictable=_every_candidate,
            close=self._close,
        )

    def _close(self) -> None:
        waiting = 0
        for job in self._view.unsettled():
            if not job.tasks:
                continue
            if job.is_ready:
                self._view.set_condition(job, Condition(SCHEDULED, READY_REASON))
            else:
                waiting += 1
                self._explain(job)
        self._view.measure("unschedule_job_count", waiting)

    def _explain(self, job: Job) -> None:
        missing = fit_errors.unschedulable_count(job)
        message = f"{missing}/{len(job.tasks)} tasks in gang unschedulable: {fit_errors.job_text(job)}"
        self._view.set_condition(job, Condition(UNSCHEDULABLE, NOT_ENOUGH_RESOURCES, message))
        self._view.measure("job_retry_counts", 1, job_id=job.name)
        self._view.measure("unschedule_task_count", missing, job_id=job.name)


def _valid(job: Job) -> Invalid | None:
    if not readiness.roles_valid(job):
        return Invalid("NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling")
    if not readiness.sub_groups_valid(job):
        return Invalid("NotEnoughPodsOfTask", "Not enough valid subGroups of each task for gang-scheduling")
    if job.valid_count < job.min_member:
        return Invalid(
            "NotEnoughTasks",
            f"Not enough valid tasks for gang-scheduling, valid: {job.valid_count}, min: {job.min_member}",
        )
    return None


def _incomplete_first(item: Job | SubJob) -> Key:
    return (item.is_ready,)


def _ready(job: Job) -> bool:
    return job.is_ready and readiness.roles_ready(job) and readiness.sub_groups_ready(job)


def _pipelined(job: Job) -> Vote:
    complete = job.is_pipelined and readiness.roles_pipelined(job) and readiness.sub_groups_pipelined(job)
    return Vote.PERMIT if complete else Vote.REJECT


def surplus(candidates: Sequence[Task]) -> Victims:
    """Candidates that their gangs can do without, the first of each gang first."""
    left: dict[str, int] = {}
    victims: list[Task] = []
    for task in candidates:
        job = task.job
        if job is None:
            continue
        count = left.get(job.id)
        if count is None:
            count = left[job.id] = job.ready_count
        if count > job.min_member:
            left[job.id] = count - 1
            victims.append(task)
    return victims, Vote.PERMIT


def _every_candidate(_context: EvictionContext, candidates: Sequence[Task]) -> Victims:
    return candidates, Vote.PERMIT
