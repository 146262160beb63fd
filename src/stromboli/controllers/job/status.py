"""Composing the status of a job, and telling whether anything in it changed (spec 02 section 17).

A status is plain data here: it is compared with the stored one and written as the difference. Two things differ from
the letter of the spec because reports showed the letter to hurt: ``lastTransitionTime`` moves only when the phase
does, and ``runningDuration`` and the conditions are frozen once a job has finished.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from stromboli.api import durations
from stromboli.api.batch import Job
from stromboli.api.core import timestamp
from stromboli.api.phases import JobPhase as Phase
from stromboli.controllers.job import phases, pods
from stromboli.controllers.job.counting import Count
from stromboli.controllers.job.memo import Memo
from stromboli.kube.json import JsonObject

MOST_CONDITIONS = 32
POD_CREATION_FAILED = "PodCreationFailed"
LONGEST_MESSAGE = 1024


@dataclass(slots=True, kw_only=True)
class Draft:
    """What a pass over a job found out and decided; :func:`compose` makes a status of it."""

    phase: Phase
    count: Count
    version: int
    retry_count: int
    min_available: int
    controlled: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    message: str = ""


_RECORDED: Memo[JsonObject] = Memo()


def recorded(job: Job) -> JsonObject:
    """The status as it is stored; not to be changed."""
    return _RECORDED.of(job.status, job.status.to_wire)


def compose(job: Job, draft: Draft, now: float) -> JsonObject:
    """The status that says what ``draft`` says. ``now`` is seconds since the epoch."""
    old = recorded(job)
    state: JsonObject = {
        "phase": str(draft.phase),
        "reason": draft.reason,
        "message": draft.message[:LONGEST_MESSAGE],
        "lastTransitionTime": (old.get("state") or {}).get("lastTransitionTime"),
    }
    entered = (old.get("state") or {}).get("phase") != draft.phase
    if entered or not state["lastTransitionTime"]:
        state["lastTransitionTime"] = wire_time(now)
    new: JsonObject = {
        "state": {key: value for key, value in state.items() if value},
        "minAvailable": draft.min_available,
        "pending": draft.count["Pending"],
        "running": draft.count["Running"],
        "succeeded": draft.count["Succeeded"],
        "failed": draft.count["Failed"],
        "unknown": draft.count["Unknown"],
        "terminating": draft.count.terminating,
        "taskStatusCount": _task_counts(draft.count),
        "version": draft.version,
        "retryCount": draft.retry_count,
        "controlledResources": draft.controlled,
        "conditions": _conditions(old, str(draft.phase), state["lastTransitionTime"], entered=entered),
        "runningDuration": _duration(job, old, draft.phase, now, entered=entered),
    }
    return {key: value for key, value in new.items() if value not in (None, 0, {}, [], "")}


def _task_counts(count: Count) -> JsonObject:
    return {task: {"phase": dict(sorted(counted.items()))} for task, counted in sorted(count.tasks.items()) if counted}


def _conditions(old: JsonObject, phase: str, when: str, *, entered: bool) -> list[JsonObject]:
    """At most one entry for each phase, the current one last."""
    present: list[JsonObject] = list(old.get("conditions") or [])
    if not entered and any(one.get("status") == phase for one in present):
        return present[-MOST_CONDITIONS:]
    others = [one for one in present if one.get("status") != phase]
    return [*others, {"status": phase, "lastTransitionTime": when}][-MOST_CONDITIONS:]


def _duration(job: Job, old: JsonObject, phase: Phase, now: float, *, entered: bool) -> str | None:
    """Age of the job when it stopped; absent while it is on its way to run or running."""
    if phase in (Phase.PENDING, Phase.RUNNING):
        return None
    if not entered and old.get("runningDuration"):
        return str(old["runningDuration"])
    created = timestamp(job.metadata.creation_timestamp) if job.metadata.creation_timestamp else now
    return durations.format(max(0, int(now - created)) * durations.SECOND)


def creation_failed(job: Job, message: str, now: float) -> JsonObject:
    """The stored status, plus the news that pods could not be created and why; but a restart keeps its own reason."""
    status = refused(job, POD_CREATION_FAILED, message)
    return {**status, "conditions": _creation_conditions(status, now)}


def refused(job: Job, reason: str, message: str) -> JsonObject:
    """The stored status, plus the reason why nothing can be done for the job now; but a restart keeps its own."""
    status = recorded(job)
    if job.status.state.phase == Phase.RESTARTING:
        return status
    state = {**(status.get("state") or {}), "reason": reason, "message": message[:LONGEST_MESSAGE]}
    return {**status, "state": state}


def _creation_conditions(status: JsonObject, now: float) -> list[JsonObject]:
    present: list[JsonObject] = list(status.get("conditions") or [])
    if any(one.get("status") == POD_CREATION_FAILED for one in present):
        return present
    return [*present, {"status": POD_CREATION_FAILED, "lastTransitionTime": wire_time(now)}][-MOST_CONDITIONS:]


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> JsonObject:
    """The JSON merge patch that turns ``old`` into ``new``; empty when they are the same."""
    patch: JsonObject = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = difference(before, value)
            if inner:
                patch[key] = inner
        elif value != before:
            patch[key] = value
    return patch


def wire_time(seconds: float) -> str:
    """RFC 3339 in UTC, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def tally(job: Job, draft: Draft) -> phases.Tally:
    """What the next-phase rules see of a pass."""
    count = draft.count
    return phases.Tally(
        min_available=job.spec.min_available,
        tasks=tuple(
            phases.TaskTally(task.replicas, task.min_available, count.succeeded_of(pods.task_name(task)))
            for task in job.spec.tasks
        ),
        min_success=job.spec.min_success,
        retry_count=draft.retry_count,
        max_retry=max_retry(job),
        pending=count["Pending"],
        running=count["Running"],
        succeeded=count["Succeeded"],
        failed=count["Failed"],
        terminating=count.terminating,
        recorded_min_available=job.status.min_available,
    )


DEFAULT_MAX_RETRY = 3


def max_retry(job: Job) -> int:
    """``spec.maxRetry``; 3 when it is not set or 0, as admission has it."""
    return job.spec.max_retry or DEFAULT_MAX_RETRY
