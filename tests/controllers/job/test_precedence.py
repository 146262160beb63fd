"""Policies that never act are told of, those that do are not, and what is told is what the policies really do."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.batch import LifecyclePolicy
from stromboli.api.phases import JobAction, JobEvent
from stromboli.controllers.job import policies, precedence
from stromboli.controllers.job.operations import RecordEvent, WriteStatus
from stromboli.controllers.job.planning import plan
from stromboli.controllers.job.policies import Occurrence
from tests.controllers.building import JobBuilder, job
from tests.controllers.job.test_planning import NOW, view
from tests.controllers.stage import stage


def one_task() -> JobBuilder:
    return job().task("worker", 2)


def parts() -> JobBuilder:
    return job().task("worker", 2, partitionPolicy={"totalPartitions": 1, "partitionSize": 2})


@dataclass(frozen=True, slots=True)
class Case:
    """A job and what is told of it, by words of each note."""

    builder: JobBuilder
    want: tuple[tuple[str, ...], ...] = ()


FIRST = "the first that matches decides, the task's policies before the job's"
CASES: dict[str, Case] = {
    "no policies": Case(one_task()),
    "one for each event": Case(one_task().policy("PodFailed", "RestartJob").policy("PodEvicted", "RestartPod")),
    "two for one event": Case(
        one_task().policy("PodFailed", "RestartJob").policy("PodFailed", "AbortJob"),
        (("spec.policies[1]: PodFailed never leads to AbortJob", "spec.policies[0] (RestartJob) comes first", FIRST),),
    ),
    "two that do the same": Case(one_task().policy("PodFailed", "AbortJob").policy("PodFailed", "AbortJob")),
    "two that do the same at other times": Case(
        one_task().policy("PodFailed", "AbortJob", timeout="1m").policy("PodFailed", "AbortJob"),
        (("spec.policies[1]: PodFailed never leads to AbortJob",),),
    ),
    "behind one for all": Case(
        one_task().policy("*", "RestartJob").policy("TaskCompleted", "CompleteJob"),
        (("spec.policies[1]: TaskCompleted never leads to CompleteJob", "spec.policies[0] (RestartJob)"),),
    ),
    "before one for all": Case(one_task().policy("TaskCompleted", "CompleteJob").policy("*", "RestartJob")),
    "one of two events is taken": Case(
        one_task().policy("PodFailed", "RestartJob").policy(["PodEvicted", "PodFailed"], "AbortJob"),
        (("spec.policies[1]: PodFailed never leads to AbortJob",),),
    ),
    "a code before all failures": Case(
        one_task().policy("", "AbortJob", exitCode=3).policy("PodFailed", "RestartJob"),
    ),
    "a code behind all failures": Case(
        one_task().policy("PodFailed", "RestartJob").policy("", "AbortJob", exitCode=3),
        (("spec.policies[1]: exit code 3 never leads to AbortJob", "spec.policies[0] (RestartJob)"),),
    ),
    "a code twice": Case(
        one_task().policy("", "AbortJob", exitCode=3).policy("", "RestartJob", exitCode=3),
        (("spec.policies[1]: exit code 3 never leads to RestartJob",),),
    ),
    "a code and every failure in one": Case(
        one_task().policy("PodFailed", "AbortJob", exitCode=3),
        (("spec.policies[0]: exitCode 3 narrows nothing", "leave out the event"),),
    ),
    "a code and another event in one": Case(one_task().policy("PodEvicted", "AbortJob", exitCode=3)),
    "pending pods without a timeout": Case(
        one_task().policy("PodPending", "AbortJob"),
        (("spec.policies[0]: PodPending never leads to AbortJob", "give the policy a timeout"),),
    ),
    "pending pods behind one for all at once": Case(
        one_task().policy("*", "RestartJob").policy("PodPending", "AbortJob", timeout="1h")
    ),
    "pending pods behind one for all in time": Case(
        one_task().policy("*", "RestartJob", timeout="2h").policy("PodPending", "AbortJob", timeout="1h"),
        (("spec.policies[1]: PodPending never leads to AbortJob",),),
    ),
    "two for all, the second in time": Case(one_task().policy("*", "RestartJob").policy("*", "AbortJob", timeout="1h")),
    "an event that nothing raises": Case(
        one_task().policy("JobUpdated", "RestartJob"), (("JobUpdated never leads to", "nothing ever raises it"),)
    ),
    "an event that no policy is asked about": Case(
        one_task().policy("PodRunning", "RestartJob"), (("PodRunning never leads to", "no policy is asked"),)
    ),
    "no event at all": Case(one_task().policy("", "RestartJob"), (("names no event and no exit code",),)),
    "the PodGroup's event at a task": Case(
        one_task().policy("Unknown", "RestartJob", task="worker"),
        (("spec.tasks[0].policies[0]: Unknown never leads to RestartJob", "put the policy into spec.policies"),),
    ),
    "the PodGroup's event at the job": Case(one_task().policy("Unknown", "RestartJob")),
    "the PodGroup's event and a part of the job": Case(
        one_task().policy("Unknown", "RestartPod"), (("RestartPod restarts nothing", "use RestartJob"),)
    ),
    "partitions that are not there": Case(
        one_task().policy("PodFailed", "RestartPartition"), (("there are no partitions",),)
    ),
    "partitions that are there": Case(parts().policy("PodFailed", "RestartPartition")),
    "partitions of another task": Case(
        parts().task("chief", 1).policy("PodFailed", "RestartPartition", task="chief"),
        (("spec.tasks[1].policies[0]", "there are no partitions"),),
    ),
    "a task against its job": Case(
        one_task().task("chief", 1).policy("PodFailed", "RestartTask", task="worker").policy("PodFailed", "AbortJob")
    ),
    "all tasks against their job": Case(
        one_task()
        .task("chief", 1)
        .policy("PodFailed", "RestartTask", task="worker")
        .policy("*", "RestartPod", task="chief")
        .policy("PodFailed", "AbortJob"),
        (
            (
                "spec.policies[0]: PodFailed never leads to AbortJob, because every task has a policy of its own",
                "the first spec.tasks[0].policies[0] (RestartTask)",
            ),
        ),
    ),
    "all tasks as their job": Case(
        one_task().policy("PodFailed", "AbortJob", task="worker").policy("PodFailed", "AbortJob")
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_told(case: Case) -> None:
    found = list(precedence.notes(case.builder.model()))
    assert len(found) == len(case.want), found
    for note, words in zip(found, case.want, strict=True):
        for word in words:
            assert word in note


OF_PODS = [JobEvent.POD_FAILED, JobEvent.POD_EVICTED, JobEvent.POD_PENDING, JobEvent.TASK_COMPLETED]
EVENTS = [*OF_PODS, JobEvent.JOB_UNKNOWN]
POLICY = st.builds(
    LifecyclePolicy,
    events=st.lists(st.sampled_from([*EVENTS, JobEvent.ANY]).map(str), min_size=1, max_size=2, unique=True),
    action=st.sampled_from([JobAction.RESTART_JOB, JobAction.ABORT_JOB, JobAction.COMPLETE_JOB]).map(str),
    timeout=st.sampled_from([None, "1m"]),
    exit_code=st.sampled_from([None, 3]),
)
LISTS = st.lists(POLICY, max_size=3)


@given(of_worker=LISTS, of_chief=LISTS, of_job=LISTS)
def test_a_policy_that_decides_anything_is_never_said_to_be_without_effect(
    of_worker: list[LifecyclePolicy], of_chief: list[LifecyclePolicy], of_job: list[LifecyclePolicy]
) -> None:
    """Against what really happens: every occurrence there can be, and which policy it leads to."""
    model = job().task("worker", 1).task("chief", 1).model()
    model.spec.tasks[0].policies, model.spec.tasks[1].policies, model.spec.policies = of_worker, of_chief, of_job
    lists = {"spec.tasks[0].policies": of_worker, "spec.tasks[1].policies": of_chief, "spec.policies": of_job}
    for field, held in lists.items():
        for position, policy in enumerate(held):
            policy.action = f"{field}[{position}]"  # so that the answer says who has given it
    decided = {(policies.resolve(model, one).spelled, told) for one in occurrences() for told in told_as(one)}
    for note in precedence.notes(model):
        field, _, told = note.partition(": ")
        event = told.partition(" never leads to ")[0]
        assert (field, event) not in decided, note


def told_as(one: Occurrence) -> list[str]:
    """The words by which a note may mean the occurrence."""
    return [one.event, "any event", *([f"exit code {one.exit_code}"] if one.exit_code else [])]


def occurrences() -> list[Occurrence]:
    of_pods = [
        Occurrence(event=event, task=task, pod="p", exit_code=code if event == JobEvent.POD_FAILED else 0)
        for event in OF_PODS
        for task in ("worker", "chief")
        for code in (1, 3)
    ]
    return [*of_pods, Occurrence(event=JobEvent.JOB_UNKNOWN)]


def test_a_job_is_told_at_its_beginning_and_of_a_few_only() -> None:
    builder = one_task()
    for number in range(8):
        builder.policy("PodFailed", "RestartJob" if number % 2 else "AbortJob")
    begun, *others = plan(view(builder, group=None), NOW).operations
    assert isinstance(begun, WriteStatus)
    told = [one.message for one in others if isinstance(one, RecordEvent) and one.reason == "PolicyWithoutEffect"]
    assert len(told) == 4  # three do what the first does
    builder.policy("PodPending", "AbortJob").policy("JobUpdated", "AbortJob")
    told = [one.message for one in plan(view(builder, group=None), NOW).operations if isinstance(one, RecordEvent)]
    assert len(told) == 5
    assert all(text.endswith("(6 such findings in all)") for text in told)
    later = plan(view(builder.phase("Pending"), group=None), NOW).operations
    assert not [one for one in later if isinstance(one, RecordEvent)]


async def test_a_job_with_such_policies_runs() -> None:
    async with stage() as scene:
        builder = one_task().policy("PodFailed", "TerminateJob").policy("PodFailed", "RestartJob")
        await scene.running(builder, 2)
        assert len(scene.events.messages("job1", "PolicyWithoutEffect")) == 1
        scene.set_pod("job1-worker-0", "Failed", exit_code=1)
        await scene.until(lambda: scene.phase() == "Terminated")
