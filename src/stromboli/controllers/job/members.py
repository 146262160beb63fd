"""The pods of a job as its controller sees them: few fields, read once, compared by UID.

A pod belongs to a job only through its controller reference, so a pod left over from a deleted job of the same name is
nobody's member. Spec 02 sections 3.2 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stromboli.api import kinds, names
from stromboli.api.core import Pod, timestamp

_API_VERSION, _KIND = kinds.JOBS.api_version, kinds.JOBS.kind
LIVE_PHASES = frozenset({"Pending", "Running"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One pod of a job. An empty pod phase reads as ``Pending``."""

    name: str
    uid: str
    job_name: str
    job_uid: str
    task: str
    index: int | None = None
    partition: str = ""
    version: int = 0
    retry: int = 0
    """``job-retry-count``: how many restarts the job had begun when the pod was created."""
    phase: str = "Pending"
    terminating: bool = False
    marked: bool = False
    """The controller itself has decided to remove this pod: what happens to it triggers no policy."""
    exit_code: int = 0
    restarts: int = 0
    all_ready: bool = True
    scheduler: str = field(default="", compare=False)
    unheeded_since: float | None = field(default=None, compare=False)
    """When it was created (seconds since the epoch); None if a scheduler has left a trace on it."""

    @property
    def counts_as(self) -> str:
        """The phase under which the pod is counted; anything unheard of is ``Unknown``."""
        return self.phase if self.phase in {"Pending", "Running", "Succeeded", "Failed"} else "Unknown"


def job_of(pod: Pod) -> tuple[str, str] | None:
    """``(job name, job UID)`` of the Job that controls a pod, or None for any other pod."""
    owner = pod.controller
    if owner is None or owner.kind != _KIND or owner.api_version != _API_VERSION:
        return None
    return owner.name, owner.uid


def member_of(pod: Pod) -> Member | None:
    """The pod as a member of its job, or None when it is not one or lacks the annotations every member has."""
    owner = job_of(pod)
    if owner is None:
        return None
    notes = pod.metadata.annotations
    version = _integer(notes.get(names.JOB_VERSION))
    if version is None or names.JOB_NAME not in notes or names.TASK_SPEC not in notes:
        return None
    statuses = pod.status.container_statuses
    return Member(
        name=pod.name,
        uid=pod.uid,
        job_name=owner[0],
        job_uid=owner[1],
        task=notes[names.TASK_SPEC],
        index=_integer(notes.get(names.TASK_INDEX)),
        partition=pod.metadata.labels.get(names.PARTITION_ID, ""),
        version=version,
        retry=_integer(notes.get(names.JOB_RETRY_COUNT)) or 0,
        phase=pod.status.phase or "Pending",
        terminating=pod.deleting,
        marked=names.CONTROLLER_OUT_OF_SYNC in notes,
        exit_code=_exit_code(pod),
        restarts=sum(one.restart_count for one in (*pod.status.init_container_statuses, *statuses)),
        all_ready=all(status.ready for status in statuses),
        scheduler=pod.spec.scheduler_name,
        unheeded_since=_unheeded_since(pod),
    )


def heeded(pod: Pod) -> bool:
    """Whether a scheduler has left a trace on a pod: a node, or word that there is none."""
    return bool(pod.spec.node_name) or any(one.type == "PodScheduled" for one in pod.status.conditions)


def _unheeded_since(pod: Pod) -> float | None:
    made = pod.metadata.creation_timestamp
    return timestamp(made) if made and not heeded(pod) else None


def _exit_code(pod: Pod) -> int:
    """Exit code of the first container; 0 while it has none. Init containers do not count."""
    statuses = pod.status.container_statuses
    ended = statuses[0].state.terminated if statuses else None
    return ended.exit_code if ended else 0


def _integer(text: str | None) -> int | None:
    """A 32-bit decimal integer, or None."""
    try:
        number = int(text or "", 10)
    except ValueError:
        return None
    return number if -(2**31) <= number < 2**31 else None
