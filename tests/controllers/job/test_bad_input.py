"""Jobs that ask for what they cannot have, with admission off: told why, tried again where that helps, ended where not.

Beside each of them another job runs its course and notices nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.controllers.job import contradictions
from tests.controllers.building import JobBuilder, job
from tests.controllers.stage import Stage, stage


def bad() -> JobBuilder:
    return job("bad").task("worker", 1)


def refuse(kind: Kind, code: int, message: str) -> Callable[[Stage], object]:
    """The server takes no more objects of that kind."""
    return lambda scene: scene.server.faults.fail(code, verb="create", kind=kind, times=None, message=message)


def nothing(_: Stage) -> None:
    pass


@dataclass(frozen=True)
class Case:
    """A job, what the server refuses, the Event's reason, and the words its owner needs."""

    builder: JobBuilder
    event: str
    words: tuple[str, ...]
    arrange: Callable[[Stage], object] = nothing
    admitted: bool = False
    """Whether it shows only once the job has been let in."""


TOO_LONG = "metadata.labels: Invalid value: must be no more than 63 characters"
HOPELESS: dict[str, Case] = {
    "a plugin that does not exist": Case(
        bad().spec(plugins={"telepathy": []}),
        "PluginError",
        ("failed to get plugin telepathy", "spec.plugins may name env, hcclrank"),
    ),
    "a plugin that misses a task": Case(
        bad().spec(plugins={"ray": []}), "PluginError", ("plugin ray", "doesn't have head task head"), admitted=True
    ),
    "a claim that is not there": Case(
        bad().spec(volumes=[{"mountPath": "/data", "volumeClaimName": "data"}]),
        "PVCError",
        ("pvc data is not found", "until the PVC is created"),
    ),
    "a claim that the server does not take": Case(
        bad().spec(volumes=[{"mountPath": "/data", "volumeClaim": {"accessModes": []}}]),
        "PVCError",
        ("Failed to create PVC", "at least 1 access mode is required"),
        refuse(kinds.PERSISTENT_VOLUME_CLAIMS, 422, "spec.accessModes: at least 1 access mode is required"),
    ),
    "a group that may not be made": Case(
        bad(),
        "PodGroupError",
        ("Failed to create PodGroup", "denied by a policy"),
        refuse(kinds.POD_GROUPS, 403, "denied by a policy"),
    ),
    "a queue that is not there": Case(
        bad().spec(queue="nowhere"), "QueueNotFound", ("queue nowhere not found", "create it, or submit the job to")
    ),
    "pods that an admission policy forbids": Case(
        bad(),
        "FailedCreate",
        ("violates PodSecurity",),
        refuse(kinds.PODS, 403, "violates PodSecurity: privileged"),
        admitted=True,
    ),
    "a template that is no pod": Case(
        bad(),
        "FailedCreate",
        ("spec.containers[0].image: Required value",),
        refuse(kinds.PODS, 422, "spec.containers[0].image: Required value"),
        admitted=True,
    ),
    "a name too long for the labels of its pods": Case(
        bad(), "FailedCreate", (TOO_LONG,), refuse(kinds.PODS, 422, TOO_LONG), admitted=True
    ),
    "a name too long for a Service": Case(
        bad().spec(plugins={"svc": []}),
        "PluginError",
        ("Service bad", "no more than 63 characters"),
        refuse(kinds.SERVICES, 422, "metadata.name: must be no more than 63 characters"),
    ),
    "a quantity that is none": Case(
        job("bad").task("worker", 1, requests={"cpu": "lots"}), "PodGroupError", ("Failed to create PodGroup", "lots")
    ),
}


@pytest.mark.parametrize("case", HOPELESS.values(), ids=HOPELESS.keys())
async def test_what_cannot_be_had_ends_the_job_with_its_cause(case: Case) -> None:
    async with stage(max_requeue=2) as scene:
        await scene.running(job("good").task("worker", 1), 1)
        case.arrange(scene)
        scene.submit(case.builder)
        if case.admitted:
            await scene.admit("bad")
        await scene.until(lambda: scene.phase("bad") == "Terminated", "the end")
        for words in case.words:
            assert words in scene.events.messages("bad", case.event)[0]
            assert words in scene.status("bad")["state"]["message"]
        assert scene.events.messages("bad", "ExecuteAction")[-2:] == [
            "Job failed on action SyncJob for retry limit reached",
            "Start to execute action TerminateJob ",
        ]
        scene.set_pod("good-worker-0", "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase("good") == "Completed")
        assert scene.events.reasons("good") == []


def put_claim(scene: Stage) -> None:
    scene.server.put(kinds.PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "data", "namespace": "default"}})


def put_queue(scene: Stage) -> None:
    scene.server.put(
        kinds.QUEUES, {"metadata": {"name": "nowhere"}, "spec": {"weight": 1}, "status": {"state": "Open"}}
    )


def raise_quota(scene: Stage) -> None:
    scene.server.faults.clear()


QUOTA = 'pods "bad-worker-0" is forbidden: exceeded quota: team, requested: pods=1, used: pods=4, limited: pods=4'
HELPED: dict[str, tuple[Case, str, Callable[[Stage], None]]] = {
    "the claim is made": (HOPELESS["a claim that is not there"], "PVCError", put_claim),
    "the queue is made": (HOPELESS["a queue that is not there"], "QueueNotFound", put_queue),
    "the quota is raised": (
        Case(bad(), "FailedCreate", ("exceeded quota",), refuse(kinds.PODS, 403, QUOTA), admitted=True),
        "PodCreationFailed",
        raise_quota,
    ),
}


@pytest.mark.parametrize(("case", "reason", "help"), HELPED.values(), ids=HELPED.keys())
async def test_what_comes_later_is_waited_for_and_said_meanwhile(
    case: Case, reason: str, help: Callable[[Stage], None]
) -> None:
    async with stage(max_requeue=-1) as scene:
        case.arrange(scene)
        scene.submit(case.builder)
        if case.admitted:
            await scene.admit("bad")
        await scene.until(lambda: scene.status("bad").get("state", {}).get("reason") == reason, "the reason")
        for words in case.words:
            assert words in scene.status("bad")["state"]["message"]
        help(scene)
        await scene.admit("bad")
        await scene.run_pods(1, "bad")
        await scene.until(lambda: scene.phase("bad") == "Running")
        assert "reason" not in scene.status("bad")["state"]


PARTITIONS = {"totalPartitions": 2, "partitionSize": 2}
CONTRADICTIONS: dict[str, tuple[JobBuilder, tuple[str, ...]]] = {
    "no tasks": (job("bad"), ("spec.tasks: there is none", "submit the job anew with a task")),
    "two tasks of one name": (
        job("bad").task("worker", 1).task("worker", 1),
        ("spec.tasks[1].name", "spec.tasks[0] is called worker too", "with a name for each"),
    ),
    "a gang of more pods than there are": (
        bad().spec(minAvailable=9),
        ("spec.minAvailable: 9 pods", "have only 1", "lower it, or raise the replicas"),
    ),
    "tasks that wait for each other": (
        job("bad")
        .task("a", 1, minAvailable=1, dependsOn={"name": ["b"]})
        .task("b", 1, minAvailable=1, dependsOn={"name": ["a"]}),
        ("spec.tasks[0].dependsOn: a waits for b", "not in a circle"),
    ),
    "a task that waits for itself": (
        job("bad").task("a", 1, minAvailable=1, dependsOn={"name": ["a"]}),
        ("spec.tasks[0].dependsOn: a waits for a",),
    ),
    "a task that waits for one that is not there": (
        job("bad").task("a", 1, dependsOn={"name": ["ghost"]}),
        ("a waits for ghost, which can never be ready", "tasks that wait for others of the job"),
    ),
    "a task that waits for more pods than another has": (
        job("bad").task("a", 1, minAvailable=2).task("b", 1, dependsOn={"name": ["a"]}).spec(minAvailable=1),
        ("spec.tasks[1].dependsOn: b waits for a",),
    ),
    "partitions that do not hold the task": (
        job("bad").task("worker", 5, partitionPolicy=PARTITIONS),
        ("spec.tasks[0].partitionPolicy: 2 partitions of 2 hold 4 pods, but the task has 5", "make replicas 4"),
    ),
    "an action that is none": (
        bad().policy("PodFailed", "Explode"),
        ("spec.policies[0].action: Explode is no action", "correct it"),
    ),
    "an action of a task that is none": (
        bad().policy("PodFailed", "Explode", task="worker"),
        ("spec.tasks[0].policies[0].action: Explode is no action",),
    ),
}


@pytest.mark.parametrize(("builder", "words"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
async def test_what_contradicts_itself_is_told_once_with_what_to_do(
    builder: JobBuilder, words: tuple[str, ...]
) -> None:
    async with stage() as scene:
        await scene.running(job("good").task("worker", 1), 1)
        scene.submit(builder)
        await scene.admit("bad")
        await scene.until(lambda: scene.status("bad").get("state", {}).get("reason") == "InvalidJob", "the reason")
        await scene.admit("bad", "Running")
        scene.set_pod("good-worker-0", "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase("good") == "Completed")
        [told] = scene.events.messages("bad", "InvalidJob")
        assert scene.status("bad")["state"]["message"] == told
        for word in words:
            assert word in told
        assert scene.events.reasons("good") == []


SOUND: dict[str, JobBuilder] = {
    "a chain of tasks": job("bad").task("a", 1, minAvailable=1).task("b", 1, minAvailable=1, dependsOn={"name": ["a"]})
    .task("c", 1, dependsOn={"name": ["b"]}),
    "a circle that nobody waits in": job("bad").task("a", 1, dependsOn={"name": ["b"]})
    .task("b", 1, dependsOn={"name": ["a"]}),
    "any of two, of which one is there": job("bad").task("a", 1, minAvailable=1)
    .task("b", 1, dependsOn={"name": ["ghost", "a"], "iteration": "any"}),
    "partitions that hold the task": job("bad").task("worker", 4, partitionPolicy=PARTITIONS),
    "scaled to nothing": job("bad").task("worker", 0).spec(minAvailable=2),
    "every action": bad().policy("PodFailed", "AbortJob").policy("PodEvicted", "RestartPod", task="worker"),
}  # fmt: skip


@pytest.mark.parametrize("builder", SOUND.values(), ids=SOUND.keys())
def test_what_makes_sense_contradicts_nothing(builder: JobBuilder) -> None:
    assert contradictions.first(builder.model()) == ""


async def test_a_contradiction_that_is_resolved_is_not_told_any_more() -> None:
    async with stage() as scene:
        scene.submit(bad().spec(minAvailable=2))
        await scene.admit("bad")
        await scene.until(lambda: scene.status("bad").get("state", {}).get("reason") == "InvalidJob")
        better = scene.job("bad")
        better["spec"]["minAvailable"] = 1
        scene.server.put(kinds.JOBS, better)
        await scene.run_pods(1, "bad")
        await scene.until(lambda: scene.phase("bad") == "Running")
        assert "reason" not in scene.status("bad")["state"]


async def test_a_policy_for_exit_code_0_is_for_nothing() -> None:
    async with stage() as scene:
        await scene.running(bad().spec(policies=[{"exitCode": 0, "action": "RestartJob"}]), 1)
        scene.set_pod("bad-worker-0", "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase("bad") == "Completed")
        assert "retryCount" not in scene.status("bad")
