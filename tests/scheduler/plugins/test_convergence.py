"""Evictions come to an end (pains P44, P45 and P68): many cycles, in which evicted pods come back as new ones."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import PluginOption
from stromboli.testing.builders import PodBuilder, QueueBuilder, node, pod, pod_group, queue
from tests.scheduler.core.worlds import feed, policy, world
from tests.scheduler.owners import Owners
from tests.scheduler.plugins.sessions import option


def reclaiming(mirror: Mirror, pods: list[PodBuilder], plugin: PluginOption | str) -> Owners:
    """The cluster under a policy whose plugins all stand in one tier."""
    wanted = policy("priority", "conformance", plugin, "predicates", actions="enqueue allocate reclaim")
    return Owners.of(mirror, pods, wanted)


def cluster(queues: list[QueueBuilder], cpu: int) -> Mirror:
    root = [] if any(one.name == "root" for one in queues) else [queue("root").build()]
    return world([*root, *(one.build() for one in queues)], node("n").offer(cpu=cpu, memory="64Gi").build())


def group(mirror: Mirror, name: str, in_queue: str) -> None:
    feed(mirror, pod_group(name).members(1).queue(in_queue).phase("Inqueue").build())


@pytest.mark.parametrize("plugin", ["capacity", option("capacity", hierarchy=True)])
def test_p44_an_evicted_pod_does_not_take_back_the_room_made_for_another(plugin: PluginOption | str) -> None:
    mirror = cluster([queue("one").deserve(cpu=3), queue("two").deserve(cpu=5)], cpu=8)
    pods = [
        pod("a").group("a").request(cpu=4).on("n"),
        pod("b").group("b").request(cpu=1).on("n"),
        pod("c").group("c").request(cpu=4),
    ]
    for name, in_queue in (("a", "one"), ("b", "two"), ("c", "two")):
        group(mirror, name, in_queue)
    running = reclaiming(mirror, pods, plugin)
    assert running.comes_to_rest(within=20)
    assert sum(running.evictions) == 1
    assert any(task.name == "c" and task.node is not None for task in mirror.tasks.values())


@pytest.mark.parametrize("plugin", ["capacity", option("capacity", hierarchy=True)])
def test_p45_two_queues_do_not_reclaim_from_each_other_for_ever(plugin: PluginOption | str) -> None:
    mirror = cluster([queue(name).deserve(cpu=5, memory="32Gi").cap(cpu=10) for name in ("one", "two")], cpu=11)
    pods = []
    for name in ("one", "two"):
        for at in range(5):
            job = f"{name}{at}"
            group(mirror, job, name)
            pods.append(pod(job).group(job).request(cpu=2, memory="1Gi"))
    assert reclaiming(mirror, pods, plugin).comes_to_rest(within=15)


@st.composite
def demands(draw: st.DrawFn) -> tuple[list[QueueBuilder], list[tuple[str, str, int]], int]:
    """Two departments with two queues each, and pods of different size in them."""
    queues = [queue(dept).deserve(cpu=draw(st.integers(0, 8)), memory="16Gi") for dept in ("x", "y")]
    queues += [
        queue(f"{dept}{leaf}").parent(dept).deserve(cpu=draw(st.integers(0, 6)), memory="8Gi")
        for dept in ("x", "y")
        for leaf in ("1", "2")
    ]
    leaves = [one.name for one in queues if len(one.name) == 2]
    pods = [
        (f"p{at}", draw(st.sampled_from(leaves)), draw(st.integers(1, 4))) for at in range(draw(st.integers(2, 10)))
    ]
    return queues, pods, draw(st.integers(4, 12))


def test_p68_the_share_of_a_department_is_no_right_of_one_of_its_queues_against_another() -> None:
    departments = [queue("x").deserve(cpu=5, memory="16Gi")]
    leaves = [queue(name).parent("x").deserve(cpu=1, memory="8Gi") for name in ("x1", "x2")]
    mirror = cluster([*departments, *leaves], cpu=4)
    group(mirror, "a", "x1")
    group(mirror, "b", "x2")
    pods = [pod("a").group("a").request(cpu=2, memory="1Gi"), pod("b").group("b").request(cpu=3, memory="1Gi")]
    running = reclaiming(mirror, pods, option("capacity", {"ancestorReclaimLevel": 1}, hierarchy=True))
    assert running.comes_to_rest(within=10)
    assert sum(running.evictions) == 0


def test_p68_a_department_that_has_enough_does_not_bring_another_below_its_share() -> None:
    departments = [queue("x").deserve(cpu=7, memory="16Gi"), queue("y").deserve(cpu=1, memory="16Gi")]
    leaves = [queue(name).parent(name[0]).deserve(cpu=1, memory="8Gi") for name in ("x1", "y2")]
    mirror = cluster([*departments, *leaves], cpu=10)
    sizes = {"a": 1, "b": 1, "c": 1, "d": 1, "e": 2, "f": 2, "g": 1}
    for name in sizes:
        group(mirror, name, "x1")
    group(mirror, "large", "y2")
    pods = [pod(name).group(name).request(cpu=cpu, memory="1Gi") for name, cpu in {**sizes, "large": 4}.items()]
    running = reclaiming(mirror, pods, option("capacity", {"ancestorReclaimLevel": 1}, hierarchy=True))
    assert running.comes_to_rest(within=20)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(demands(), st.integers(0, 2))
def test_p68_reclaim_between_queues_of_a_tree_comes_to_an_end(
    drawn: tuple[list[QueueBuilder], list[tuple[str, str, int]], int], level: int
) -> None:
    queues, wanted, cpu = drawn
    mirror = cluster(queues, cpu)
    for name, in_queue, _ in wanted:
        group(mirror, name, in_queue)
    pods = [pod(name).group(name).request(cpu=size, memory="1Gi") for name, _, size in wanted]
    tree = option("capacity", {"ancestorReclaimLevel": level}, hierarchy=True)
    assert reclaiming(mirror, pods, tree).comes_to_rest(within=30)
