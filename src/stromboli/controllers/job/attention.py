"""Whether any scheduler looks at what a job waits for, and what its owner is told when none does.

A scheduler leaves traces: a phase or a condition on a PodGroup, a node or the condition ``PodScheduled`` on a pod. A
job whose ``schedulerName`` nobody serves waits without any, and nobody but this controller could say so. It does when
there has been no trace for :data:`PATIENCE` seconds, or ten times as long if a scheduler of that name has been seen at
work: that one is busy, or down, and both have signs of their own. The complaint is worked out anew in every pass and is
gone with the first trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from stromboli.api import core
from stromboli.api.core import Pod, PodGroup
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.job import pods
from stromboli.controllers.job.members import Member, heeded
from stromboli.controllers.job.observed import Observed
from stromboli.kube.clocks import Clock

NO_SCHEDULER = "NoScheduler"
"""Reason, in the job's status and of the Event."""
PATIENCE = 60.0
"""Seconds without a trace before the owner is told."""
PATIENCE_WITH_ONE_AT_WORK = 600.0
"""The same, counted from its last trace, for a scheduler that has been seen at work."""
GROUPS = ""
"""Stands among the names of schedulers for whoever looks at PodGroups, which name none."""
MOST_NAMES = 256
KUBERNETES_OWN = "default-scheduler"
"""What the API server fills in where a pod names no scheduler."""


class Attention:
    """When each scheduler was last seen at work, by name, in seconds since the epoch."""

    def __init__(self, informers: SharedInformers, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, float] = {}
        informers.pods.add_handler(on_add=self._pod_seen, on_update=self._pod_changed)
        informers.pod_groups.add_handler(on_add=self._group_seen, on_update=self._group_changed)

    @property
    def seen(self) -> Mapping[str, float]:
        """By name; under :data:`GROUPS` for PodGroups."""
        return self._seen

    def is_late(self, since: float | None) -> bool:
        """Whether somebody may have been told already that there was no trace since then."""
        return since is not None and self._clock.time() - since >= PATIENCE

    def _pod_seen(self, pod: Pod) -> None:
        if heeded(pod):
            self._note(pod.spec.scheduler_name)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if not heeded(old):
            self._pod_seen(new)

    def _group_seen(self, group: PodGroup) -> None:
        if not untouched(group):
            self._note(GROUPS)

    def _group_changed(self, old: PodGroup, new: PodGroup) -> None:
        if old.status is not new.status and old.status != new.status:
            self._group_seen(new)

    def _note(self, scheduler: str) -> None:
        self._seen.pop(scheduler, None)
        self._seen[scheduler] = self._clock.time()
        if len(self._seen) > MOST_NAMES:
            del self._seen[next(iter(self._seen))]


def untouched(group: PodGroup) -> bool:
    """Whether no scheduler has left a trace on a PodGroup."""
    return not group.status.phase and not group.status.conditions


def untouched_since(group: PodGroup) -> float | None:
    """When a PodGroup without a trace was made; None for one that has a trace."""
    made = group.metadata.creation_timestamp
    return core.timestamp(made) if made and untouched(group) else None


class _Wait(NamedTuple):
    """Something that waits for a scheduler: which, since when, until when that is nothing to be told, and the words."""

    until: float
    words: str


def complaint(view: Observed, now: float) -> str:
    """What the owner is told at ``now`` (seconds since the epoch); empty when nothing waits, or not for long."""
    return next((wait.words for wait in _waits(view) if wait.until <= now), "")


def look_again_in(view: Observed, now: float) -> float | None:
    """Seconds until there may be something to tell; None when that depends on other things than time."""
    return min((wait.until - now for wait in _waits(view) if wait.until > now), default=None)


def _waits(view: Observed) -> Iterator[_Wait]:
    since = untouched_since(view.group) if view.group is not None else None
    if view.group is not None and since is not None:
        yield _Wait(_until(view, GROUPS, since), _about_group(view, view.group.name))
    pending = [one for one in view.members if one.unheeded_since is not None and not one.terminating]
    for name in dict.fromkeys(one.scheduler for one in pending):
        asking = [one for one in pending if one.scheduler == name]
        first = min(one.unheeded_since or 0.0 for one in asking)
        yield _Wait(_until(view, name, first), _about_pods(view, asking))


def _until(view: Observed, scheduler: str, since: float) -> float:
    last = view.attention.get(scheduler)
    return since + PATIENCE if last is None else max(since, last) + PATIENCE_WITH_ONE_AT_WORK


def _about_group(view: Observed, group: str) -> str:
    asked = ", ".join(dict.fromkeys(f"{name} ({field})" for name, field in _asked_for(view).values()))
    return (
        f"no scheduler has looked at PodGroup {group}, and before one lets it in no pod is made: "
        f"is one running that serves this job, which asks for {asked}? Start it, or submit the job anew with "
        "the name of one that runs"
    )


def _about_pods(view: Observed, asking: list[Member]) -> str:
    name, field = _asked_for(view).get(asking[0].task, (asking[0].scheduler, "spec.schedulerName"))
    name = asking[0].scheduler or name
    return (
        f"no scheduler has looked at the pods that are pending, which ask for {name} ({field}): is one of that name "
        "running? Start it, or submit the job anew with the name of one that runs"
    )


def _asked_for(view: Observed) -> dict[str, tuple[str, str]]:
    """The scheduler that each task asks for, and the field that says so."""
    found = {}
    for position, task in enumerate(view.job.spec.tasks):
        own = task.template.spec.scheduler_name
        field = f"spec.tasks[{position}].template.spec.schedulerName" if own else "spec.schedulerName"
        found[pods.task_name(task)] = (own or view.job.spec.scheduler_name or KUBERNETES_OWN, field)
    return found
