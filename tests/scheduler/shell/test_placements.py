"""Who is told of bound pods."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from stromboli.scheduler.core.results import Bind, TaskRef
from stromboli.scheduler.eventing import PodEvents
from stromboli.scheduler.options import Options
from stromboli.scheduler.placements import FOLD_SECONDS, MOST_PODS, ByPodGroup, BySize, sentence
from stromboli.testing.builders import node, pod, pod_group
from stromboli.testing.clocks import FakeClock
from tests.scheduler.shell.stage import PERIOD, Stage


class Told(PodEvents):
    """Notes what is told to PodGroups."""

    def __init__(self) -> None:
        self.groups: list[tuple[str, str, str]] = []

    def pod_group(self, job_id: str, uid: str, type: str, reason: str, message: str) -> None:
        self.groups.append((job_id, reason, message))


def bind(name: str, on: str, group: str = "ns/g") -> Bind:
    return Bind(TaskRef("ns", name, f"uid-{name}", group), on)


async def test_pods_of_a_second_are_told_together() -> None:
    told, clock = Told(), FakeClock()
    placements = ByPodGroup(told, lambda _: "uid", clock)
    running = asyncio.create_task(placements.run())
    for name, where in (("a", "n1"), ("b", "n2"), ("c", "n2")):
        placements.bound(bind(name, where))
    placements.bound(bind("x", "n1", "ns/h"))
    await clock.advance(FOLD_SECONDS)
    assert told.groups == [
        ("ns/g", "PodsScheduled", "3 pods assigned: 2 to n2, 1 to n1"),
        ("ns/h", "PodsScheduled", "1 pod assigned: 1 to n1"),
    ]
    placements.bound(bind("d", "n3"))
    await clock.advance(FOLD_SECONDS)
    assert told.groups[2:] == [("ns/g", "PodsScheduled", "1 pod assigned: 1 to n3")]
    await clock.advance(60.0)
    assert len(told.groups) == 3
    running.cancel()


def test_a_group_that_is_gone_is_told_nothing() -> None:
    told = Told()
    placements = ByPodGroup(told, lambda job_id: None if job_id == "ns/gone" else "uid")
    placements.bound(bind("a", "n1", "ns/gone"))
    placements.bound(bind("b", "n1"))
    placements.tell()
    assert [job_id for job_id, *_ in told.groups] == ["ns/g"]


def test_the_next_group_of_a_name_is_not_told_of_pods_of_the_one_before() -> None:
    told, uids = Told(), ["first"]
    placements = ByPodGroup(told, lambda _: uids[-1])
    placements.bound(bind("a", "n1"))
    uids.append("second")
    placements.bound(bind("b", "n2"))
    placements.tell()
    assert told.groups == [("ns/g", "PodsScheduled", "1 pod assigned: 1 to n2")]


def test_a_sentence_names_the_fullest_nodes_only() -> None:
    counts = Counter({f"n{number:02}": number for number in range(1, 13)})
    said = sentence(counts)
    assert said.startswith("78 pods assigned: 12 to n12, 11 to n11, ")
    assert said.endswith(", 3 to n03, and 3 to 2 more nodes")


class Bound:
    """Notes the pods it is told of."""

    def __init__(self) -> None:
        self.pods: list[str] = []

    def bound(self, bind: Bind) -> None:
        self.pods.append(bind.task.name)

    async def run(self) -> None:
        pass


def test_pods_of_large_groups_are_told_together_and_others_each() -> None:
    each, together = Bound(), Bound()
    sizes = {"ns/small": MOST_PODS, "ns/large": MOST_PODS + 1}
    placements = BySize(each, together, lambda job_id: sizes.get(job_id, 0))
    for name, group in (("a", "ns/small"), ("b", "ns/large"), ("c", "")):
        placements.bound(bind(name, "n1", group))
    assert (each.pods, together.pods) == (["a", "c"], ["b"])


@pytest.mark.parametrize(("members", "told"), [(2, "pods"), (MOST_PODS + 1, "podgroups")])
async def test_who_is_told_depends_on_the_size_of_the_group_unless_said_otherwise(
    stage: Stage, members: int, told: str
) -> None:
    stage.put(node("n1").offer(cpu=99, memory="8Gi", pods=110), pod_group("g").members(members))
    names = [f"p{number}" for number in range(members)]
    stage.put(*(pod(name).group("g").request(cpu=1) for name in names))
    await stage.start()
    if told == "pods":
        await stage.until(lambda: len(stage.events("Scheduled", "p0") + stage.events("Scheduled", "p1")) == 2, "events")
    else:
        await stage.until(lambda: stage.events("PodsScheduled", "g"), "an event")
        assert not any(stage.events("Scheduled", name) for name in names)


@pytest.mark.parametrize("told", ["pods", "podgroups"])
async def test_the_flag_says_who_is_told(stage: Stage, told: str) -> None:
    stage.options = Options(schedule_period=PERIOD, scheduled_events=told)
    stage.put(node("n1").offer(cpu=4, memory="8Gi"), pod_group("g").members(2))
    stage.put(*(pod(name).group("g").request(cpu=1) for name in ("a", "b")))
    await stage.start()
    if told == "pods":
        await stage.until(lambda: len(stage.events("Scheduled", "a") + stage.events("Scheduled", "b")) == 2, "events")
        assert stage.events("PodsScheduled") == []
    else:
        await stage.until(lambda: stage.events("PodsScheduled", "g"), "an event")
        assert stage.events("PodsScheduled")[0]["message"] == "2 pods assigned: 2 to n1"
        assert stage.events("Scheduled", "a") == []
