"""When a job may be collected. Pure."""

from __future__ import annotations

from stromboli.api.batch import Job
from stromboli.api.core import timestamp
from stromboli.api.phases import FINISHED_JOB_PHASES, JobPhase

COLLECTED_PHASES = FINISHED_JOB_PHASES | {JobPhase.ABORTED}
"""Phases in which nothing of a job runs any more. An aborted job with a time to live is collected as well: whoever
wants to resume it later does not set one."""


class NoFinishTime(Exception):
    """A finished job does not say when it finished."""


def is_candidate(job: Job) -> bool:
    """Whether the job will be collected one day."""
    return (
        job.metadata.deletion_timestamp is None
        and job.spec.ttl_seconds_after_finished is not None
        and job.status.state.phase in COLLECTED_PHASES
    )


def expires_at(job: Job) -> float:
    """The moment from which a candidate may be collected, seconds since the epoch.

    Raises:
        ValueError: the job is no candidate.
        NoFinishTime: the time of its last transition is missing.
    """
    if not is_candidate(job) or job.spec.ttl_seconds_after_finished is None:
        raise ValueError(f"job {job.namespace}/{job.name} should not be cleaned up")
    finished = timestamp(job.status.state.last_transition_time)
    if not finished:
        raise NoFinishTime(f"unable to find the time when the Job {job.namespace}/{job.name} finished")
    return finished + job.spec.ttl_seconds_after_finished
