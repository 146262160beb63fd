"""Jobs that are in no cycle: their PodGroup does not exist, or names a queue that does not exist. An addition of ours.

The original says nothing about them (spec 04 section 23), and their pods wait for ever without a word. Objects that
belong together arrive in any order, so nothing is said before they have had time to.
"""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.api.reasons import NEXT_STEPS, WaitReason
from stromboli.scheduler.core.records import Job, Phase
from stromboli.scheduler.core.statuses import TaskStatus

GRACE_SECONDS = 10.0
"""How long what is missing may take to arrive."""


_ELSEWHERE = "and these pods are shared out to different schedulers; give them the same first owner"


@dataclass(frozen=True, slots=True)
class Stranding:
    """Why a job is in no cycle."""

    reason: WaitReason
    message: str
    """With the next step."""
    since: float
    """When the group, or the first pod that waits for it, was created: seconds since the epoch."""


def stranding_of(job: Job, *, elsewhere: bool = False) -> Stranding | None:
    """Why a job that waits is in no cycle; None when it is in one, or nothing of it waits.

    ``elsewhere`` says that its PodGroup is another scheduler's business, while its pods are ours: neither of the two
    places them.
    """
    waiting = [task for task in job.tasks.values() if task.status == TaskStatus.PENDING and not task.gated]
    if job.pod_group is None:
        if not waiting:
            return None
        since = min(task.created for task in waiting)
        if elsewhere:
            return Stranding(WaitReason.POD_GROUP_MISSING, f"PodGroup {job.id} {_ELSEWHERE}", since)
        return _stranding(WaitReason.POD_GROUP_MISSING, f"PodGroup {job.id} does not exist", since)
    admitted = job.phase not in (Phase.PENDING, Phase.INQUEUE)
    if job.queue is not None or (admitted and not waiting):
        return None
    return _stranding(WaitReason.QUEUE_MISSING, f"queue {job.queue_name} does not exist", job.created)


def _stranding(reason: WaitReason, text: str, since: float) -> Stranding:
    return Stranding(reason, f"{text}; {NEXT_STEPS[reason]}", since)
