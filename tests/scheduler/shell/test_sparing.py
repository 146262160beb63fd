"""Nobody is told that a gang waits when its pods only come or go one after the other."""

from __future__ import annotations

from stromboli.api import core, kinds
from stromboli.kube.clocks import SystemClock
from stromboli.kube.json import JsonObject
from stromboli.scheduler.running import Scheduler
from stromboli.testing.builders import BIRTH, PodBuilder, node, pod, pod_group
from tests.scheduler.shell.stage import REGISTRY, Stage, gang

NOW = 1000.0
"""Seconds after ``BIRTH``: when all this happens, however long a test takes."""

LONG = 12
"""Cycles after which everybody who waits has been told: more than the patience that jobs are given."""


class StoppedClock(SystemClock):
    """Waits as ever, but it is always the same time of day."""

    def time(self) -> float:
        return core.timestamp(BIRTH) + NOW


async def start(stage: Stage) -> None:
    await stage.run(
        Scheduler(stage.client, stage.options, REGISTRY, stage.policies, stage.metrics, clock=StoppedClock())
    )


def told(stage: Stage) -> list[JsonObject]:
    """What the group's conditions say of its waiting; nothing that was said is ever taken back."""
    conditions = stage.server.get(kinds.POD_GROUPS, "job", "ns").get("status", {}).get("conditions") or []
    return [one for one in conditions if (one["type"], one["status"]) == ("Unschedulable", "True")]


def warnings(stage: Stage) -> list[str]:
    return [event["message"] for event in stage.server.objects(kinds.EVENTS) if event["type"] == "Warning"]


def members(first: int, last: int, *, born: float) -> list[PodBuilder]:
    return [pod(f"job-{number}").group("job").request(cpu=1).born(born) for number in range(first, last)]


async def test_gang_whose_pods_come_one_after_the_other_is_placed_without_a_word_of_waiting(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=8, memory="8Gi"), pod_group("job").members(4).queue("default").phase("Inqueue"))
    stage.put(*members(0, 3, born=NOW))
    await start(stage)
    await stage.cycles(LONG)
    assert told(stage) == []
    stage.put(*members(3, 4, born=NOW))
    await stage.until(lambda: stage.phase("job") == "Running", "phase")
    await stage.cycles(LONG)
    assert (told(stage), warnings(stage)) == ([], [])
    assert all((stage.condition(f"job-{number}") or {}).get("status") != "False" for number in range(4))


async def test_gang_is_admitted_at_once_and_not_in_the_same_breath_told_that_pods_are_missing(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=8, memory="8Gi"), pod_group("job").members(4).queue("default"))
    stage.put(*members(0, 3, born=NOW))
    await start(stage)
    await stage.until(lambda: stage.phase("job") == "Inqueue", "phase")
    assert told(stage) == []


async def test_gang_whose_pods_no_longer_come_is_told(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=8, memory="8Gi"), pod_group("job").members(4).queue("default").phase("Inqueue"))
    stage.put(*members(0, 3, born=NOW - 60))
    await start(stage)
    await stage.until(lambda: told(stage), "condition")
    await stage.until(lambda: stage.events("Unschedulable", "job"), "event on the PodGroup")
    await stage.until(lambda: (stage.condition("job-0") or {}).get("reason") == "Unschedulable", "condition of a pod")


async def test_whole_gang_without_room_is_told_however_new_its_pods_are(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=2, memory="8Gi"), *gang("job", 4, born=NOW))
    await start(stage)
    await stage.until(lambda: told(stage), "condition")
    await stage.until(lambda: (stage.condition("job-0") or {}).get("reason") == "Unschedulable", "condition of a pod")


async def test_what_a_gang_was_told_while_it_waited_stays_when_it_is_placed(stage: Stage) -> None:
    group = pod_group("job").members(4).queue("default").phase("Inqueue").unschedulable()
    stage.put(node("n1").offer(cpu=8, memory="8Gi"), group, *members(0, 4, born=NOW - 60))
    await start(stage)
    await stage.until(lambda: stage.phase("job") == "Running", "phase")
    assert [(one["reason"], one.get("transitionID", "")) for one in told(stage)] == [("NotEnoughResources", "")]


async def test_gang_whose_pods_go_one_after_the_other_is_not_called_unschedulable(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=8, memory="8Gi"), pod_group("job").members(4).queue("default").phase("Running"))
    stage.put(*(one.on("n1") for one in members(0, 4, born=NOW - 60)))
    await start(stage)
    await stage.until(lambda: stage.server.get(kinds.POD_GROUPS, "job", "ns")["status"].get("running") == 4, "counts")
    for number in range(3):
        stage.server.remove(kinds.PODS, f"job-{number}", "ns")
        await stage.until(lambda: stage.phase("job") == "Unknown", "phase")
        await stage.cycles(LONG)
    assert (told(stage), warnings(stage)) == ([], [])


async def test_gang_is_told_when_a_pod_that_was_lost_comes_again_and_finds_no_room(stage: Stage) -> None:
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), pod_group("job").members(4).queue("default").phase("Running"))
    stage.put(*(one.on("n1") for one in members(0, 4, born=NOW - 60)))
    await start(stage)
    await stage.until(lambda: stage.server.get(kinds.POD_GROUPS, "job", "ns")["status"].get("running") == 4, "counts")
    stage.server.remove(kinds.PODS, "job-0", "ns")
    await stage.until(lambda: stage.phase("job") == "Unknown", "phase")
    stage.put(pod("job-0").group("job").request(cpu=2).born(NOW - 60).with_uid("another"))
    await stage.until(lambda: told(stage), "condition")
