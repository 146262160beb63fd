"""What is written about jobs: grouping, merging of successive cycles, the patch itself, and when pods are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from stromboli.api import core, kinds
from stromboli.kube.client import Client
from stromboli.kube.events import Recorder
from stromboli.kube.json import JsonObject
from stromboli.scheduler.conditions import MESSAGE_LIMIT, PodConditions
from stromboli.scheduler.core.results import CycleResult, PodGroupUpdate, PodUpdate, TaskRef
from stromboli.scheduler.core.view import JobEvent
from stromboli.scheduler.eventing import PodEvents
from stromboli.scheduler.writing import JobWriter, JobWrites, by_job, pod_group_patch
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock
from stromboli.testing.waiting import eventually


def update(phase: str = "Running", job: str = "ns/j", message: str = "", **counters: int) -> PodGroupUpdate:
    condition = core.PodGroupCondition(
        type="Unschedulable", status="True", reason="NotEnoughResources", message=message
    )
    return PodGroupUpdate(job, "uid-1", core.PodGroupStatus(phase=phase, conditions=(condition,), **counters))


def pod(name: str, message: str = "why") -> PodUpdate:
    return PodUpdate(TaskRef("ns", name, f"uid-{name}", "ns/j"), "Unschedulable", message)


def event(message: str) -> JobEvent:
    return JobEvent("ns/j", "uid-1", "Warning", "Unschedulable", message)


def test_patch_touches_only_the_status_of_this_very_group_at_this_version() -> None:
    patch = pod_group_patch(update(running=2, message="m"), "7")
    assert patch == {
        "metadata": {"uid": "uid-1", "resourceVersion": "7"},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "m"}],
            "running": 2,
            "succeeded": None,
            "failed": None,
        },
    }


def test_message_is_bounded() -> None:
    patch = pod_group_patch(update(message="x" * 100_000), "7")
    assert len(patch["status"]["conditions"][0]["message"]) == MESSAGE_LIMIT


def test_decisions_are_grouped_by_job() -> None:
    result = CycleResult(
        "s",
        pod_groups=[update(), update(job="ns/other")],
        events=[event("e")],
        pods=[pod("a"), pod("b")],
    )
    writes = by_job(result, {"ns/j": "7"})
    assert set(writes) == {"ns/j", "ns/other"}
    assert writes["ns/j"].resource_version == "7"
    assert writes["ns/j"].events == [event("e")]
    assert set(writes["ns/j"].pods) == {"uid-a", "uid-b"}
    assert writes["ns/other"].resource_version == ""


def test_later_cycle_overrides_and_keeps_what_only_the_earlier_one_says() -> None:
    earlier = JobWrites(update("Inqueue"), "7", [event("old")], {"uid-a": pod("a", "old"), "uid-b": pod("b")})
    later = JobWrites(update("Running"), "8", [event("new")], {"uid-a": pod("a", "new")})
    both = earlier.followed_by(later)
    assert (both.group, both.resource_version, both.events) == (update("Running"), "8", [event("new")])
    assert both.pods == {"uid-a": pod("a", "new"), "uid-b": pod("b")}


def test_later_cycle_without_a_status_leaves_the_earlier_one_to_be_written() -> None:
    both = JobWrites(update("Running"), "7").followed_by(JobWrites(events=[event("e")]))
    assert (both.group, both.resource_version) == (update("Running"), "7")


def test_nobody_is_warned_any_more_that_a_gang_waits_once_it_is_placed() -> None:
    other = JobEvent("ns/j", "uid-1", "Normal", "Unschedulable", "quota")
    earlier = JobWrites(update("Inqueue"), "7", [event("36 of 40"), other])
    both = earlier.followed_by(JobWrites(update("Inqueue", running=40), "7", placed=True))
    assert both.events == [other]


def test_a_group_is_placed_when_this_very_cycle_says_so() -> None:
    def decided(session: str) -> PodGroupUpdate:
        condition = core.PodGroupCondition(type="Scheduled", status="True", transition_id=session)
        return PodGroupUpdate("ns/j", "uid-1", core.PodGroupStatus(phase="Inqueue", conditions=(condition,)))

    placed = {session: by_job(CycleResult("now", pod_groups=[decided(session)]), {}) for session in ("now", "before")}
    assert {session: writes["ns/j"].placed for session, writes in placed.items()} == {"now": True, "before": False}


# When pods are told


class Desk:
    """A writer over a fake server that has pods ``a`` to ``c`` and the PodGroup ``j``."""

    def __init__(self, server: FakeApiServer, client: Client) -> None:
        self.server, self.clock = server, FakeClock()
        self.refused: list[str] = []
        for name in "abc":
            server.put(kinds.PODS, {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"}})
        server.put(kinds.POD_GROUPS, {"metadata": {"name": "j", "namespace": "ns", "uid": "uid-1"}})
        self.recorder = Recorder(client, "volcano")
        self.writer = JobWriter(
            client,
            PodConditions(client, clock=self.clock),
            PodEvents(self.recorder),
            on_written=lambda _group: None,
            on_refused=self.refused.append,
            on_pod_refused=lambda task: self.refused.append(task.name),
            patience=3.0,
            clock=self.clock,
        )

    @property
    def told(self) -> set[str]:
        return {call.name for call in self.server.called("patch", kinds.PODS)}

    @property
    def events(self) -> set[str]:
        return {event["involvedObject"]["name"] for event in self.server.objects(kinds.EVENTS)}

    async def until_told(self, *names: str) -> None:
        await eventually(lambda: self.told == set(names))
        await eventually(lambda: not self.recorder.pending)
        assert self.events == set(names)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with FakeApiServer() as server, await server.client() as client:
        yield Desk(server, client)


@asynccontextmanager
async def at_work(desk: Desk) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(part()) for part in (desk.writer.run, desk.recorder.run)]
        yield
        for task in running:
            task.cancel()


def why(*names: str) -> dict[str, PodUpdate]:
    return {f"uid-{name}": pod(name) for name in names}


async def test_pod_that_is_placed_soon_is_not_told_why_it_waited(desk: Desk) -> None:
    async with at_work(desk):
        desk.writer.submit({"ns/j": JobWrites(pods=why("a", "b"))})
        await desk.clock.advance(2.9)
        assert desk.told == set()
        desk.writer.placed(pod("a").task)
        await desk.clock.advance(0.2)
        await desk.until_told("b")


async def test_pod_that_is_placed_while_its_group_is_written_is_not_told(desk: Desk) -> None:
    held = desk.server.faults.hold(verb="patch", kind=kinds.POD_GROUPS)
    async with at_work(desk):
        desk.writer.submit({"ns/j": JobWrites(update("Pending"), pods=why("a", "b"))})
        await eventually(lambda: held.hits)
        desk.writer.placed(pod("a").task)
        desk.writer.submit({"ns/j": JobWrites(pods=why("b", "c"))})
        desk.writer.placed(pod("c").task)
        held.release()
        await eventually(lambda: desk.server.count("patch", kinds.POD_GROUPS) == 1 and not desk.server.held)
        await eventually(lambda: desk.clock.sleepers)
        await desk.clock.advance(6)
        await desk.until_told("b")


async def test_preemptor_is_told_its_node_at_once(desk: Desk) -> None:
    preemptor = PodUpdate(pod("a").task, "Unschedulable", "why", "n1")
    async with at_work(desk):
        desk.writer.submit({"ns/j": JobWrites(pods={"uid-a": preemptor, **why("b")})})
        await desk.until_told("a")
        assert desk.server.get(kinds.PODS, "a", "ns")["status"]["nominatedNodeName"] == "n1"


async def test_pods_are_told_nothing_when_their_group_could_not_be_written(desk: Desk) -> None:
    desk.server.faults.fail(409, verb="patch", kind=kinds.POD_GROUPS, reason="Conflict")
    async with at_work(desk):
        desk.writer.submit({"ns/j": JobWrites(update("Pending"), pods=why("a"))})
        await eventually(lambda: desk.refused == ["ns/j"])
        await desk.clock.advance(10)
        assert desk.told == set()


async def test_new_phase_is_written_at_once_and_news_of_the_same_phase_with_patience(desk: Desk) -> None:
    def written() -> int:
        return desk.server.count("patch", kinds.POD_GROUPS)

    def status() -> JsonObject:
        found: JsonObject = desk.server.get(kinds.POD_GROUPS, "j", "ns").get("status", {})
        return found

    async with at_work(desk):
        desk.writer.submit({"ns/j": JobWrites(update("Inqueue"))})
        await eventually(lambda: status().get("phase") == "Inqueue")
        desk.writer.submit({"ns/j": JobWrites(update("Inqueue", message="98 of 100"), pods=why("a"))})
        await desk.clock.advance(2)
        desk.writer.submit({"ns/j": JobWrites(update("Inqueue", message="99 of 100"))})
        assert written() == 1
        desk.writer.placed(pod("a").task)
        desk.writer.submit({"ns/j": JobWrites(update("Running", running=40))})
        await eventually(lambda: status().get("phase") == "Running")
        desk.writer.submit({"ns/j": JobWrites(update("Running", running=80))})
        desk.writer.submit({"ns/j": JobWrites(update("Running", running=100))})
        await desk.clock.advance(3)
        await eventually(lambda: status().get("running") == 100)
        assert (written(), desk.told) == (3, set())


async def test_pods_do_not_wait_a_second_time_when_their_group_has_waited(desk: Desk) -> None:
    async with at_work(desk):
        desk.writer.submit({"ns/j": JobWrites(update("Inqueue"))})
        await eventually(lambda: desk.server.count("patch", kinds.POD_GROUPS) == 1)
        desk.writer.submit({"ns/j": JobWrites(update("Inqueue", message="no room"), pods=why("a"))})
        await desk.clock.advance(3)
        await desk.until_told("a")
