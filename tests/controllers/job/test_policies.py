"""Policy resolution, spec 02 section 7 and the cases of section 23."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.api.phases import JobAction as Action
from stromboli.controllers.job import phases
from stromboli.controllers.job.policies import Occurrence, resolve
from tests.controllers.building import UID, JobBuilder, job


def one_task() -> JobBuilder:
    return job().task("worker", 2)


def pod(event: str, **fields: object) -> Occurrence:
    known: dict[str, object] = {"job_uid": UID, "task": "worker", "pod": "job1-worker-0", "pod_uid": "p", "version": 0}
    return Occurrence(event=event, **{**known, **fields})  # type: ignore[arg-type]


def command(action: str, job_uid: str = UID) -> Occurrence:
    return Occurrence(event="CommandIssued", job_uid=job_uid, action=action)


@dataclass(frozen=True)
class Case:
    builder: JobBuilder
    occurrence: Occurrence
    want: Action
    want_delay: float = 0.0


CASES: dict[str, Case] = {
    "an explicit action wins over everything": Case(
        one_task().policy("*", "AbortJob").status(version=9),
        pod("CommandIssued", action="ResumeJob"),
        Action.RESUME_JOB,
    ),
    "an explicit action nobody knows is like any other": Case(one_task(), command("EnqueueJob"), phases.OTHER),
    "an explicit action for an earlier job is dropped": Case(
        one_task(), command("AbortJob", job_uid="old"), Action.SYNC_JOB
    ),
    "OutOfSync is never policed": Case(one_task().policy("*", "AbortJob"), pod("OutOfSync"), Action.SYNC_JOB),
    "PodRunning is never policed": Case(one_task().policy("*", "AbortJob"), pod("PodRunning"), Action.SYNC_JOB),
    "another job's pod": Case(
        one_task().policy("PodEvicted", "TerminateJob", task="worker"),
        pod("PodEvicted", job_uid="old"),
        Action.SYNC_JOB,
    ),
    "a pod of an earlier version": Case(
        one_task().policy("PodFailed", "RestartJob").status(version=2), pod("PodFailed", version=1), Action.SYNC_JOB
    ),
    "a pod of a later version counts": Case(
        one_task().policy("PodFailed", "RestartJob").status(version=2), pod("PodFailed", version=3), Action.RESTART_JOB
    ),
    "Unknown is not outdated by versions": Case(
        one_task().policy("Unknown", "RestartJob").status(version=2),
        Occurrence(event="Unknown", job_uid=UID),
        Action.RESTART_JOB,
    ),
    "the task's policy comes first": Case(
        one_task().policy("PodFailed", "AbortJob").policy("PodFailed", "RestartJob", task="worker"),
        pod("PodFailed"),
        Action.RESTART_JOB,
    ),
    "the job's policies still apply to what the task's do not name": Case(
        one_task().policy("PodFailed", "AbortJob").policy("TaskCompleted", "CompleteJob", task="worker"),
        pod("PodFailed"),
        Action.ABORT_JOB,
    ),
    "the first match in a list decides": Case(
        one_task().policy("PodFailed", "AbortJob").policy("PodFailed", "RestartJob"), pod("PodFailed"), Action.ABORT_JOB
    ),
    "PodPending without a timeout is ignored": Case(
        one_task().policy("PodPending", "RestartPod"), pod("PodPending"), Action.SYNC_JOB
    ),
    "PodPending with a timeout is delayed": Case(
        one_task().policy("PodPending", "RestartPod", timeout="10s"), pod("PodPending"), Action.RESTART_POD, 10.0
    ),
    "any event does not mean PodPending": Case(
        one_task().policy("*", "RestartJob"), pod("PodPending"), Action.SYNC_JOB
    ),
    "any event means evictions": Case(one_task().policy("*", "RestartJob"), pod("PodEvicted"), Action.RESTART_JOB),
    "a list of events, one twice": Case(
        one_task().policy(["PodEvicted", "PodFailed", "PodEvicted"], "TerminateJob"),
        pod("PodEvicted"),
        Action.TERMINATE_JOB,
    ),
    "the exit code alone decides": Case(
        one_task().policy("", "RestartJob", exitCode=3), pod("PodFailed", exit_code=3), Action.RESTART_JOB
    ),
    "another exit code": Case(
        one_task().policy("", "RestartJob", exitCode=3), pod("PodFailed", exit_code=4), Action.SYNC_JOB
    ),
    "nothing matches": Case(one_task().policy("TaskFailed", "AbortJob"), pod("PodFailed"), Action.SYNC_JOB),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_an_occurrence_leads_to(case: Case) -> None:
    found = resolve(case.builder.model(), case.occurrence)
    assert (found.action, found.delay) == (case.want, case.want_delay)
