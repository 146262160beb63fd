"""Flows from beginning to end, with jobs, templates and faults coming in every order."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from stromboli.api import kinds, names
from stromboli.controllers.jobflow.conditions import Question
from stromboli.controllers.jobflow.controller import JobFlowController
from stromboli.controllers.jobflow.probing import Prober
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from stromboli.testing.faults import Call, Disconnect, Duplicate, Failure, Fault, Reorder
from tests.controllers.jobflow.flows import flow, job, step, template
from tests.controllers.stage import Stage, stage

STEPS = (step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))


@dataclass
class Ended:
    """Flows that were counted."""

    counted: list[tuple[str, str]] = field(default_factory=list)

    def flow_ended(self, namespace: str, phase: str) -> None:
        self.counted.append((namespace, phase))


async def start(scene: Stage, numbers: Ended | None = None, **options: Any) -> None:
    await scene.run(
        lambda informers: JobFlowController(
            scene.client, informers, scene.events, numbers or Ended(), clock=scene.clock, **options
        )
    )


@asynccontextmanager
async def flows(*given: JsonObject, templates: str = "abcd", **options: Any) -> AsyncIterator[Stage]:
    async with stage(start=False) as scene:
        for name in templates:
            scene.server.put(kinds.JOB_TEMPLATES, template(name))
        for one in given:
            scene.server.put(kinds.JOB_FLOWS, one)
        await start(scene, **options)
        yield scene


def status(scene: Stage, name: str = "f") -> JsonObject:
    found: JsonObject = scene.server.get(kinds.JOB_FLOWS, name, "default").get("status") or {}
    return found


def phase(scene: Stage, name: str = "f") -> str:
    return str(status(scene, name).get("state", {}).get("phase", ""))


def jobs(scene: Stage) -> list[str]:
    return sorted(scene.names_of(kinds.JOBS))


def end(scene: Stage, name: str, phase: str = "Completed") -> None:
    found = scene.server.get(kinds.JOBS, name, "default")
    scene.server.put(kinds.JOBS, {**found, "status": {"state": {"phase": phase}}})


async def run_to_the_end(scene: Stage, **ends: str) -> None:
    """Complete every job that appears, or end it as told, until the flow is over."""
    over = ("Succeed", "Failed")

    def one_more() -> bool:
        for name in jobs(scene):
            found = scene.server.get(kinds.JOBS, name, "default")
            if not (found.get("status") or {}).get("state"):
                end(scene, name, ends.get(name.removeprefix("f-"), "Completed"))
        return phase(scene) in over

    await scene.until(one_more, "the flow's end")


async def test_a_diamond() -> None:
    numbers = Ended()
    async with flows(flow(*STEPS), numbers=numbers) as scene:
        await scene.until(lambda: jobs(scene) == ["f-a"])
        assert phase(scene) == "Pending"
        end(scene, "f-a", "Running")
        await scene.until(lambda: phase(scene) == "Running")
        assert jobs(scene) == ["f-a"]
        end(scene, "f-a")
        await scene.until(lambda: jobs(scene) == ["f-a", "f-b", "f-c"])
        end(scene, "f-b")
        await scene.until(lambda: status(scene).get("completedJobs") == ["f-a", "f-b"])
        assert jobs(scene) == ["f-a", "f-b", "f-c"]
        await run_to_the_end(scene)
        assert (phase(scene), jobs(scene)) == ("Succeed", ["f-a", "f-b", "f-c", "f-d"])
        await scene.until(lambda: numbers.counted == [("default", "Succeed")])
        assert scene.events.messages("f", "Created") == [f"create a job named f-{one}!" for one in "abcd"]


async def test_what_a_job_looks_like() -> None:
    patch = {"queue": "default", "maxRetry": 3, "minAvailable": 9}
    async with flows(flow(step("a", patch=patch))) as scene:
        await scene.until(lambda: jobs(scene) == ["f-a"])
        made = scene.server.get(kinds.JOBS, "f-a", "default")
        origin = {names.CREATED_BY_JOB_TEMPLATE: "default.a", names.CREATED_BY_JOB_FLOW: "default.f"}
        assert made["metadata"]["labels"] == made["metadata"]["annotations"] == origin
        assert made["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "flow.volcano.sh/v1alpha1",
                "kind": "JobFlow",
                "name": "f",
                "uid": "uid-f",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert made["spec"] == {**template("a")["spec"], "minAvailable": 9}


async def test_a_failing_branch_ends_the_flow() -> None:
    numbers = Ended()
    async with flows(flow(*STEPS), numbers=numbers) as scene:
        await run_to_the_end(scene, b="Failed")
        assert phase(scene) == "Failed"
        assert "f-d" not in jobs(scene)
        assert numbers.counted == [], "it had run before"


async def test_two_flows_of_the_same_templates() -> None:
    async with flows(flow(step("a"), name="f"), flow(step("a"), name="g")) as scene:
        await scene.until(lambda: jobs(scene) == ["f-a", "g-a"])
        end(scene, "f-a", "Running")
        end(scene, "g-a")
        await scene.until(lambda: (phase(scene, "f"), phase(scene, "g")) == ("Running", "Succeed"))
        assert [one["name"] for one in status(scene, "f")["jobStatusList"]] == ["f-a"]


async def test_jobs_are_deleted_after_success_if_that_is_wanted() -> None:
    async with flows(flow(step("a"), jobRetainPolicy="delete")) as scene:
        await run_to_the_end(scene)
        await scene.until(lambda: not jobs(scene))
        assert (phase(scene), status(scene)["completedJobs"]) == ("Succeed", ["f-a"])


async def test_a_template_that_comes_later_wakes_the_flow() -> None:
    """Defect 13 of spec 03 section 13."""
    async with flows(flow(step("a"), step("b")), templates="b") as scene:
        await scene.until(lambda: jobs(scene) == ["f-b"])
        await scene.until(lambda: scene.events.messages("f", "JobTemplateNotFound"))
        assert "there is no JobTemplate default/a" in scene.events.messages("f", "JobTemplateNotFound")[0]
        scene.server.put(kinds.JOB_TEMPLATES, template("a"))
        await scene.until(lambda: jobs(scene) == ["f-a", "f-b"])


async def test_a_finished_job_that_is_deleted_is_not_made_again_by_a_new_controller() -> None:
    """Defect 12 of spec 03 section 13."""
    async with flows(flow(step("a"), step("b", "a"))) as scene:
        await scene.until(lambda: jobs(scene) == ["f-a"])
        end(scene, "f-a")
        await scene.until(lambda: jobs(scene) == ["f-a", "f-b"])
        await scene.until(lambda: status(scene).get("completedJobs") == ["f-a"])
        scene.server.remove(kinds.JOBS, "f-a", "default")
        await scene.stop()
        await start(scene)
        end(scene, "f-b")
        await scene.until(lambda: phase(scene) == "Succeed")
        assert jobs(scene) == ["f-b"]


async def test_a_job_of_an_earlier_flow_of_that_name_is_not_taken_for_ours() -> None:
    async with flows(templates="a") as scene:
        scene.server.put(kinds.JOBS, {**job("f-a", "Completed", owner="earlier")})
        scene.server.put(kinds.JOB_FLOWS, flow(step("a")))
        await scene.until(lambda: scene.events.messages("f", "ForeignJob"))
        assert phase(scene) == "Pending"
        scene.server.remove(kinds.JOBS, "f-a", "default")
        await scene.until(lambda: jobs(scene) == ["f-a"] and not scene.job("f-a").get("status"))


async def test_nothing_is_written_when_nothing_changed() -> None:
    async with flows(flow(step("a"), step("b", "a"))) as scene:
        await scene.until(lambda: jobs(scene) == ["f-a"])
        await scene.until(lambda: status(scene).get("jobStatusList"))
        await scene.stop()
        before = len(scene.server.called("patch", kinds.JOB_FLOWS, "f"))
        scene.server.put(kinds.JOB_FLOWS, flow(step("a"), name="g"))
        await start(scene, workers=1)
        await scene.until(lambda: jobs(scene) == ["f-a", "g-a"])
        assert len(scene.server.called("patch", kinds.JOB_FLOWS, "f")) == before


async def test_a_flow_in_no_known_phase_stops_no_other() -> None:
    odd = flow(step("a"), name="odd", status={"state": {"phase": "Flying"}})
    async with flows(odd, flow(step("a"))) as scene:
        await run_to_the_end(scene)
        assert phase(scene) == "Succeed"


async def test_a_probe_is_asked_until_it_says_yes() -> None:
    asked: list[str] = []

    async def ask(question: Question, address: str) -> bool:
        asked.append(address)
        return len(asked) >= 3

    probe = {"tcpSocketList": [{"taskName": "t", "port": 1}]}
    options: dict[str, Any] = {"prober": Prober(ask), "probe_interval": 0.01}
    async with flows(flow(step("a"), step("b", "a", probe=probe)), **options) as scene:
        await scene.until(lambda: jobs(scene) == ["f-a"])
        put_pod_of(scene, "f-a")
        end(scene, "f-a", "Running")
        await scene.until(lambda: jobs(scene) == ["f-a", "f-b"])
        assert asked[:3] == ["10.0.0.1"] * 3


async def test_a_flow_whose_pods_do_not_answer_keeps_no_other_waiting() -> None:
    never = asyncio.Event()

    async def ask(question: Question, address: str) -> bool:
        await never.wait()
        return False

    probe = {"tcpSocketList": [{"taskName": "t", "port": 1}]}
    async with flows(flow(step("a"), step("b", "a", probe=probe)), prober=Prober(ask)) as scene:
        await scene.until(lambda: jobs(scene) == ["f-a"])
        put_pod_of(scene, "f-a")
        end(scene, "f-a", "Running")
        scene.server.put(kinds.JOB_FLOWS, flow(step("c"), name="g"))
        await scene.until(lambda: jobs(scene) == ["f-a", "g-c"])


def put_pod_of(scene: Stage, job: str) -> None:
    owner = {"apiVersion": kinds.JOBS.api_version, "kind": "Job", "name": job, "controller": True}
    reference = {**owner, "uid": json.uid_of(scene.job(job))}
    meta = {"name": "p", "namespace": "default", "annotations": {names.TASK_SPEC: "t"}, "ownerReferences": [reference]}
    scene.server.put(kinds.PODS, {"metadata": meta, "status": {"phase": "Running", "podIP": "10.0.0.1"}})


# -- orders and faults -------------------------------------------------------------------------------------------------


def arrivals(scene: Stage) -> list[Callable[[], object]]:
    return [
        lambda: scene.server.put(kinds.JOB_FLOWS, flow(step("a"), step("b", "a"))),
        lambda: scene.server.put(kinds.JOB_TEMPLATES, template("a")),
        lambda: scene.server.put(kinds.JOB_TEMPLATES, template("b")),
        lambda: scene.server.put(kinds.JOBS, job("f-a", "Completed")),
    ]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
async def test_the_order_of_arrivals_does_not_matter(order: tuple[int, ...]) -> None:
    async with flows(templates="") as scene:
        for arrival in order:
            arrivals(scene)[arrival]()
            await asyncio.sleep(0)
        await scene.until(lambda: jobs(scene) == ["f-a", "f-b"])
        end(scene, "f-a")  # it may have been made by the controller before ours arrived
        end(scene, "f-b")
        await scene.until(lambda: phase(scene) == "Succeed")


class Write(Failure):
    """Refuses one write."""

    def applies(self, call: Call) -> bool:
        return call.verb in ("create", "update", "patch", "delete") and super().applies(call)


class LostAnswer(Disconnect):
    """Carries out one write and cuts the connection."""

    def applies(self, call: Call) -> bool:
        return call.verb in ("create", "update", "patch", "delete") and super().applies(call)


FAULTS: dict[str, Callable[[int], Fault]] = {
    "refused": lambda n: Write(skip=n, code=500),
    "in conflict": lambda n: Write(skip=n, code=409, reason="Conflict"),
    "carried out without an answer": lambda n: LostAnswer(skip=n, executed=True),
}


@pytest.mark.parametrize("make", FAULTS.values(), ids=FAULTS.keys())
async def test_a_fault_at_any_write_changes_nothing_in_the_end(make: Callable[[int], Fault]) -> None:
    for n in range(40):
        async with flows(flow(*STEPS, jobRetainPolicy="delete")) as scene:
            fault = make(n)
            scene.server.faults.add(fault)
            await run_to_the_end(scene)
            await scene.until(lambda: not jobs(scene))  # noqa: B023 - awaited at once
            assert phase(scene) == "Succeed", f"with the fault at write {n}"
            assert [one["state"] for one in status(scene)["jobStatusList"]] == ["Completed"] * 4
        if not fault.hits:
            return
    raise AssertionError("more writes than such a flow needs")


@pytest.mark.parametrize("fault", [Duplicate(verb="watch", times=None), Reorder(verb="watch", times=None)])
async def test_what_goes_wrong_on_a_watch_changes_nothing_in_the_end(fault: Fault) -> None:
    async with stage(start=False) as scene:
        scene.server.faults.add(fault)
        for name in "abcd":
            scene.server.put(kinds.JOB_TEMPLATES, template(name))
        await start(scene)
        scene.server.put(kinds.JOB_FLOWS, flow(*STEPS))
        await run_to_the_end(scene)
        assert (phase(scene), jobs(scene)) == ("Succeed", ["f-a", "f-b", "f-c", "f-d"])
