"""Composing the status of a flow (spec 03 section 5.4). Pure.

Lists follow the order of the steps. Entries of jobs that are gone stay, because they say what must not be run again;
histories are bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from stromboli.api import durations
from stromboli.api.batch import Job
from stromboli.api.core import timestamp
from stromboli.api.flow import FlowJobStatus, RunningHistory
from stromboli.api.phases import JobPhase
from stromboli.controllers.jobflow.progress import next_phase
from stromboli.controllers.jobflow.view import View
from stromboli.kube.json import JsonObject

LONGEST_HISTORY: Final = 32
_LISTS: Final = {
    JobPhase.PENDING: "pendingJobs",
    JobPhase.RUNNING: "runningJobs",
    JobPhase.FAILED: "failedJobs",
    JobPhase.COMPLETED: "completedJobs",
    JobPhase.TERMINATED: "terminatedJobs",
}
_UNLISTED: Final = frozenset({JobPhase.COMPLETING, JobPhase.TERMINATING})
_REST: Final = "unKnowJobs"


def compose(view: View, *, now: float) -> JsonObject:
    """The status of the flow as it should be stored.

    Raises:
        ValueError: the flow's phase is none.
    """
    jobs = _in_order(view)
    phase = next_phase(view.flow.status.state.phase, [view.phase_of(step) for step in view.steps])
    return {
        **_lists(jobs),
        "conditions": {job.name: _condition(job) for job in jobs},
        "jobStatusList": _entries(view, jobs, now),
        "state": {"phase": str(phase)},  # the wire knows no enumerations
    }


def _in_order(view: View) -> list[Job]:
    steps = [view.job_name(step) for step in view.steps]
    return [view.jobs[name] for name in [*steps, *sorted(set(view.jobs) - set(steps))] if name in view.jobs]


def _lists(jobs: Iterable[Job]) -> JsonObject:
    lists: dict[str, list[str]] = {}
    for job in jobs:
        phase = job.status.state.phase
        if phase not in _UNLISTED:
            known = JobPhase(phase) if phase in _LISTS else None
            lists.setdefault(_LISTS[known] if known else _REST, []).append(job.name)
    return {title: lists.get(title, []) for title in (*_LISTS.values(), _REST)}


def _condition(job: Job) -> JsonObject:
    status = job.status
    found = {
        "phase": status.state.phase,
        "createTime": job.metadata.creation_timestamp,
        "runningDuration": status.running_duration,
        "taskStatusCount": {task: state.to_wire() for task, state in status.task_status_count.items()},
    }
    return {key: value for key, value in found.items() if value}


def _entries(view: View, jobs: Iterable[Job], now: float) -> list[JsonObject]:
    before = {one.name: one for one in view.flow.status.job_status_list}
    fresh = {job.name: _entry(job, before.get(job.name), now) for job in jobs}
    kept = [fresh.pop(name) if name in fresh else one.to_wire() for name, one in before.items()]
    return [*kept, *fresh.values()]


def _entry(job: Job, before: FlowJobStatus | None, now: float) -> JsonObject:
    histories = _histories(before.running_histories if before else [], job.status.state.phase, now)
    found = {
        "name": job.name,
        "state": job.status.state.phase,
        "startTimestamp": job.metadata.creation_timestamp,
        "endTimestamp": _end(job),
        "restartCount": job.status.retry_count,
        "runningHistories": [one.to_wire() for one in histories],
    }
    return {key: value for key, value in found.items() if value or key == "name"}


def _end(job: Job) -> str | None:
    created, ran = job.metadata.creation_timestamp, job.status.running_duration
    try:
        return _rfc3339(timestamp(created) + durations.seconds(ran)) if created and ran else None
    except ValueError:
        return None  # somebody wrote a duration that is none


def _histories(before: list[RunningHistory], phase: str, now: float) -> list[RunningHistory]:
    if not phase or (before and before[-1].state == phase):
        return before
    moment = _rfc3339(now)
    closed = [one.model_copy(update={"end_timestamp": moment}) for one in before[-1:]]
    return [*before[:-1], *closed, RunningHistory(start_timestamp=moment, state=phase)][-LONGEST_HISTORY:]


def _rfc3339(moment: float) -> str:
    return datetime.fromtimestamp(int(moment), UTC).isoformat().replace("+00:00", "Z")
