"""What this process has done that the watch cache may not show yet.

A cache lags behind the writes of its own process. Without a memory of them a controller would count a pod that it has
just killed, recreate one that it has just created, or act twice on the same failure. Entries are by UID and go away
when the cache has caught up, or with the job. After a restart the memory is empty and so is the lag.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stromboli.controllers.job.members import Member
from stromboli.kube import json
from stromboli.kube.json import JsonObject


@dataclass(frozen=True, slots=True)
class Created:
    """A pod that was created, and until when (steady time) it is believed in without the cache showing it.

    The limit is for a pod that came and went before its creation was noted, or while no watch was there to tell of it:
    nothing else would ever end the belief.
    """

    member: Member
    until: float


@dataclass(slots=True)
class JobLedger:
    """The memory about one job (one UID)."""

    written: JsonObject | None = None
    """The job as the last own write returned it, until the cache shows it."""
    carried_on: str = ""
    """The version that the last write of a status made, if whoever wrote it goes on from there."""
    shown: int = 0
    """The version of the job that the cache has shown last."""
    removed: set[str] = field(default_factory=set)
    """UIDs of pods that were deleted."""
    created: dict[str, Created] = field(default_factory=dict)
    """Pods that were created, by name."""
    doubted: bool = False
    """Whether it is seen to that the job is looked at when the belief in created pods ends (see :mod:`.doubts`)."""
    created_group: str = ""
    """UID of the PodGroup that was created last."""
    group_awaited_until: float | None = None
    """Until when (steady time) that group is believed in without the cache showing it; None: the cache has shown it."""
    shown_group: str = ""
    """UID of the PodGroup that the cache has shown last; a watch may be faster than an answer."""
    group_spec: JsonObject | None = None
    """What the group that is awaited was created with."""
    wants_group: bool = False
    """Whether the last pass would have created that very PodGroup, had it not been there or on its way already."""
    removed_groups: set[str] = field(default_factory=set)
    """UIDs of PodGroups that were deleted."""
    pods: int = 0
    """How many pods the last pass has seen."""
    behind_since: float | None = None
    """Since when (steady time) the counters in the stored status differ from those of the pods; None: they do not."""
    kept: dict[tuple[str, str], JsonObject | None] = field(default_factory=dict)
    """Plugin objects by plural and name as they were last seen or written; absent: not looked at yet."""

    def awaits_group(self, moment: float) -> bool:
        """Whether a PodGroup was created that the cache does not show yet."""
        until = self.group_awaited_until
        return until is not None and until > moment and self.created_group not in self.removed_groups

    @property
    def doubtful_at(self) -> float | None:
        """When (steady time) the first belief in something that no watch has shown ends; None when there is none."""
        ends = [one.until for one in self.created.values()]
        if self.group_awaited_until is not None:
            ends.append(self.group_awaited_until)
        return min(ends, default=None)

    def made_group(self, group: JsonObject, until: float) -> None:
        """A PodGroup was created, to be believed in for so long."""
        self.created_group = json.uid_of(group)
        if self.created_group != self.shown_group:
            self.group_awaited_until, self.group_spec = until, group["spec"]

    def await_group_no_longer(self) -> None:
        """The cache has shown the group or its end, or it is believed in no more."""
        self.group_awaited_until = self.group_spec = None

    def doubt(self, moment: float) -> None:
        """Believe no longer in what should have been shown by now."""
        self.created = {name: one for name, one in self.created.items() if one.until > moment}
        if self.group_awaited_until is not None and self.group_awaited_until <= moment:
            self.await_group_no_longer()

    def wrote(self, job: JsonObject) -> None:
        """An own write returned this; the watch may have been faster."""
        self.written = job if _version(job) > self.shown else None


LONGEST_LAG = 30.0
"""Seconds by which a watch may lag behind a write before the write is forgotten."""


class Ledger:
    """Memories by job UID."""

    def __init__(self) -> None:
        self._jobs: dict[str, JobLedger] = {}

    def of(self, job_uid: str) -> JobLedger:
        """The memory about a job, empty at first."""
        return self._jobs.setdefault(job_uid, JobLedger())

    def known(self, job_uid: str) -> JobLedger | None:
        """The memory about a job, if there is any."""
        return self._jobs.get(job_uid)

    def forget(self, job_uid: str) -> None:
        """The job is gone."""
        self._jobs.pop(job_uid, None)

    def __len__(self) -> int:
        """Jobs remembered."""
        return len(self._jobs)

    def show(self, job: JsonObject) -> None:
        """The cache shows this job: what was written before need not be remembered."""
        memory = self._jobs.get(json.uid_of(job))
        if memory is not None:
            memory.shown = _version(job)
            if memory.written is not None and _version(memory.written) <= memory.shown:
                memory.written = None

    def freshest(self, job: JsonObject) -> JsonObject:
        """The newer of the cached job and the one that was last written."""
        memory = self._jobs.get(json.uid_of(job))
        written = memory.written if memory else None
        if memory is None or written is None:
            return job
        return written if _version(written) > _version(job) else job


def _version(obj: JsonObject) -> int:
    text = json.resource_version_of(obj)
    return int(text) if text.isdecimal() else 0
