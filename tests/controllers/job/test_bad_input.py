"""Jobs that ask for what they cannot have, with admission off: told why, tried again where that helps, ended where not.

Beside each of them another job runs its course and notices nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from stromboli.api import kinds
from stromboli.api.kinds import Kind
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
