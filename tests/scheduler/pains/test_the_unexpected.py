"""The clusters of the reports about caches, topology and inputs that stop things (pains P55 to P74, C1 to C6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from unittest.mock import patch

import pytest

from stromboli.api import core, names
from stromboli.scheduler.core.journal import Journal
from stromboli.scheduler.core.policy import DEFAULT_POLICY
from stromboli.testing.builders import QueueBuilder, hyper_node, node, pod, pod_group, priority_class, queue
from tests.scheduler.core.worlds import audit, binds, evicted, feed, policy, run_cycle, world
from tests.scheduler.owners import Owners
from tests.scheduler.pains.policies import POLICIES

ARRIVALS: dict[str, core.Object] = {
    "node": node("n").offer(cpu=3, memory="4Gi").build(),
    "podgroup": pod_group("g").members(1).build(),
    "pod-bound": pod("bound").group("g").request(cpu=1, memory="1Gi").on("n").build(),
    "pod-pending": pod("pending").group("g").request(cpu=1, memory="1Gi").build(),
}


@pytest.mark.parametrize("order", list(permutations(ARRIVALS)), ids=", ".join)
def test_p55_things_may_arrive_in_any_order_and_a_node_may_never_come(order: Sequence[str]) -> None:
    """After each arrival there is a cycle, and one more bound pod names a node that nobody has heard of."""
    stray = pod("stray").group("g").request(cpu=1, memory="1Gi").on("never").build()
    mirror = world([queue("root").build(), queue().build()], stray)
    bound: dict[str, str] = {}
    for name in order:
        feed(mirror, ARRIVALS[name])
        result = run_cycle(mirror, DEFAULT_POLICY)
        assert not result.problems
        bound |= binds(result)
        audit(mirror)
    assert bound == {"pending": "n"}


def test_p60_a_node_that_lost_gpus_gets_no_pods_until_it_has_some_to_spare() -> None:
    """Eight are in use when eight become six."""
    whole, less = (node("n").offer(cpu=64, memory="64Gi", gpu=count).build() for count in (8, 6))
    running = [pod(f"r{at}").group("old").request(cpu=1, memory="1Gi", gpu=1).on("n") for at in range(8)]
    new = [pod(f"w{at}").group("new").request(cpu=1, memory="1Gi", gpu=1).build() for at in range(2)]
    mirror = world(
        [queue("root").build(), queue().build(), whole, pod_group("old").members(1).phase("Running").build()],
        [one.build() for one in running],
        less,
        pod_group("new").members(1).build(),
        new,
    )
    seen = []
    for gone in range(5):
        for one in running[max(gone - 1, 0) : gone]:
            mirror.delete_pod(f"ns/{one.name}", one.build().uid)
        result = run_cycle(mirror, DEFAULT_POLICY)
        assert not result.problems
        seen.append(len(result.binds))
    assert seen == [0, 0, 0, 1, 1], "with 8, 7 and 6 in use there is none to spare"
    feed(mirror, whole)
    audit(mirror)


@pytest.mark.parametrize("name", ["chart", "chart, evicting", "everything by weight", "everything in a tree"])
def test_p62_a_soft_gang_is_not_split_over_two_racks_when_one_takes_it_all(name: str) -> None:
    """Three racks of two nodes; nodes 4 and 6 are full; two replicas that stay away from each other: rack 1."""
    apart = core.PodAffinityTerm(
        topology_key="kubernetes.io/hostname", label_selector=core.LabelSelector(match_labels={"app": "a"})
    )
    affinity = core.Affinity(
        pod_anti_affinity=core.PodAffinity(required_during_scheduling_ignored_during_execution=(apart,))
    )
    nodes = [
        node(f"node{at}").offer(cpu=8, memory="32Gi").label(**{"kubernetes.io/hostname": f"node{at}"}).build()
        for at in range(1, 7)
    ]
    racks = [hyper_node(f"rack{at}", 1, (f"node{2 * at - 1}", f"node{2 * at}")) for at in (1, 2, 3)]
    full = [pod(f"f{at}").group("full").request(cpu=8, memory="1Gi").on(f"node{at}").build() for at in (4, 6)]
    mirror = world(
        [queue("root").build(), queue().build(), *nodes, *racks],
        hyper_node("all", 2, children=("rack1", "rack2", "rack3")),
        [pod_group("full").members(1).phase("Running").build(), *full],
        pod_group("g").members(2).topology("soft").build(),
        [
            pod(f"r{at}").group("g").label(app="a").request(cpu=2, memory="1Gi").affine(affinity).build()
            for at in range(2)
        ],
    )
    chosen = POLICIES[name]
    if not any(option.name == "network-topology-aware" for tier in chosen.tiers for option in tier):
        chosen = policy("priority", "gang", "predicates", "nodeorder", "binpack", "network-topology-aware")
    result = run_cycle(mirror, chosen)
    assert not result.problems
    assert set(binds(result).values()) == {"node1", "node2"}


def test_p70_a_node_that_blips_leaves_the_record_of_where_a_gang_is() -> None:
    racks = [hyper_node(f"s{at}", 1, (f"n{2 * at}", f"n{2 * at + 1}")) for at in (0, 1)]
    nodes = [node(f"n{at}").offer(cpu=1, memory="4Gi") for at in range(4)]
    mirror = world(
        [queue("root").build(), queue().build(), *racks, *(one.build() for one in nodes)],
        pod_group("g").members(2).topology("hard", 1).build(),
    )
    pods = [pod(f"p{at}").group("g").request(cpu=1, memory="1Gi") for at in range(2)]
    cluster = Owners.of(mirror, pods, POLICIES["chart, evicting"])
    plugins = policy("priority", "gang", "predicates", "nodeorder", "network-topology-aware")
    cluster.policy = plugins
    assert cluster.comes_to_rest(within=9)
    before, record = cluster.placed(), mirror.jobs["ns/g"].allocated_hyper_node
    assert record in ("s0", "s1")
    where = next(one for one in nodes if one.name == before["p0"])
    blips: list[Callable[[], None]] = [
        lambda: feed(mirror, where.taint("node.kubernetes.io/not-ready", effect="NoExecute").cordon().build()),
        lambda: feed(mirror, where.build()),
        lambda: mirror.delete_node(where.name, where.build().uid),
        lambda: feed(mirror, where.build()),
    ]
    for blip in blips:
        blip()
        for _ in range(6):
            cluster.cycle()
        assert cluster.placed() == before
        assert {task.node_name for task in mirror.jobs["ns/g"].tasks.values()} == set(before.values())
        assert mirror.jobs["ns/g"].allocated_hyper_node in (record, "")
    assert mirror.jobs["ns/g"].allocated_hyper_node == record
    audit(mirror)


def test_p73_pods_of_the_incarnation_before_that_still_end_do_not_count_as_members() -> None:
    """Three old pods end on the nodes; three new ones of the same group wait for a gang of three."""
    old = [pod(f"p{at}").with_uid(f"old{at}").group("g").request(cpu=1, memory="1Gi").on("n").deleting() for at in "ab"]
    new = [pod(f"q{at}").group("g").request(cpu=1, memory="1Gi").build() for at in range(2)]
    mirror = world(
        [queue("root").build(), queue().build(), node("n").offer(cpu=3, memory="9Gi").build()],
        pod_group("g").members(2).build(),
        [one.build() for one in old],
        new,
    )
    first = run_cycle(mirror, DEFAULT_POLICY)
    assert not first.binds, "one free cpu is not enough for a gang of two, whoever is ending"
    assert mirror.jobs["ns/g"].ready_count == 0
    for one in old:
        mirror.delete_pod(f"ns/{one.name}", one.build().uid)
    assert len(run_cycle(mirror, DEFAULT_POLICY).binds) == 2


@pytest.mark.parametrize("action", ["preempt", "reclaim", "gangpreempt", "gangreclaim"])
def test_p74_the_search_for_victims_is_bounded_when_a_job_can_never_fit(action: str) -> None:
    """500 nodes full of jobs of one GPU, and a job of 501 pods that would need a node more than there are."""
    count = 500
    mirror = world(
        [queue("root").build(), queue("q").deserve(cpu=9999, memory="9999Gi", **{names.NVIDIA_GPU: 9999}).build()],
        [queue("other").build(), priority_class("low", 1), priority_class("high", 100)],
        [node(f"n{at}").offer(cpu=8, memory="64Gi", gpu=1).build() for at in range(count)],
        [
            pod_group(f"s{at}").queue("q" if "preempt" in action else "other").members(1).priority_class("low").build()
            for at in range(count)
        ],
        [
            pod(f"s{at}").group(f"s{at}").request(cpu=1, memory="1Gi", gpu=1).priority(1).on(f"n{at}").build()
            for at in range(count)
        ],
        pod_group("big").queue("q").members(count + 1).priority_class("high").build(),
        [
            pod(f"b{at}").group("big").request(cpu=1, memory="1Gi", gpu=1).priority(100).build()
            for at in range(count + 1)
        ],
    )
    tried = 0
    evict = Journal.evict

    def counted(journal: Journal, *given: object) -> None:
        nonlocal tried
        tried += 1
        evict(journal, *given)  # type: ignore[arg-type]

    plugins = ("priority", "conformance", "gang", "predicates", "capacity", "nodeorder")
    with patch.object(Journal, "evict", counted):
        result = run_cycle(mirror, policy(*plugins, actions=f"allocate {action}"))
    assert not result.problems
    assert evicted(result) == []
    assert tried <= 2 * count, "each node is looked at a fixed number of times"
    assert any(report.job_id == "ns/big" for report in result.reports)


# What stopped the original: one node of 4 cpu, pods of 1 cpu and 1Gi


def place(path: str, weights: str) -> dict[str, str]:
    return {names.HIERARCHY: path, names.HIERARCHY_WEIGHTS: weights}


STOPPING: dict[str, list[QueueBuilder]] = {
    "C1: a parent that does not exist": [queue("q1").parent("ghost")],
    "C2: queues that are each other's parents": [queue("q1").parent("q2"), queue("q2").parent("q1")],
    "C4: a job in a queue that has children": [queue("dept"), queue("q1").parent("dept")],
    "C6: more names than weights": [replace(queue("q1"), annotations=place("root/a/b", "1/2"))],
    "C6: weights that are no numbers": [replace(queue("q1"), annotations=place("root/a/b", "1/heavy/2"))],
    "P31: children are guaranteed more than their parent": [
        queue("dept")._spec(guarantee=core.Guarantee(resource={"cpu": "500m"})),
        queue("q1").parent("dept")._spec(guarantee=core.Guarantee(resource={"cpu": "300m"})),
        queue("q2").parent("dept")._spec(guarantee=core.Guarantee(resource={"cpu": "300m"})),
    ],
    "P33: a child may have more than the cluster": [queue("q1").cap(cpu=200)],
}
GROUP_IN = {"C4: a job in a queue that has children": "dept"}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("situation", STOPPING)
def test_one_bad_queue_is_set_aside_and_the_others_are_scheduled(situation: str, name: str) -> None:
    """A pod runs in the bad queue, another waits there; the good queue takes what is left and asks for more."""
    group_in = GROUP_IN.get(situation, "q1")
    mirror = world(
        [queue("root").build(), queue("good").build(), *(one.build() for one in STOPPING[situation])],
        node("n").offer(cpu=4, memory="16Gi").build(),
        [pod_group("bad").members(1).queue(group_in).build(), pod_group("good").members(2).queue("good").build()],
        pod("bad0").group("bad").request(cpu=1, memory="1Gi").on("n").build(),
        pod("bad1").group("bad").request(cpu=1, memory="1Gi").build(),
        [pod(f"good{at}").group("good").request(cpu=1, memory="1Gi").build() for at in range(4)],
    )
    bound: dict[str, str] = {}
    for _ in range(3):
        result = run_cycle(mirror, POLICIES[name])
        assert not result.problems
        bound |= binds(result)
        audit(mirror)
    assert sum(one.startswith("good") for one in bound) >= 2


def test_of_equal_pods_the_same_is_evicted_in_whatever_order_they_arrived() -> None:
    pods = [pod(f"p{at}").group("low").request(cpu=1, memory="1Gi").priority(1).on("n").build() for at in range(4)]
    victims = set()
    for order in permutations(pods):
        mirror = world(
            [queue("root").build(), queue().build(), priority_class("low", 1), priority_class("high", 100)],
            node("n").offer(cpu=4, memory="16Gi").build(),
            pod_group("low").members(1).priority_class("low").build(),
            order,
            pod_group("high").members(1).priority_class("high").build(),
            pod("high").group("high").request(cpu=1, memory="1Gi").priority(100).build(),
        )
        victims.add(tuple(evicted(run_cycle(mirror, POLICIES["chart, evicting"]))))
    assert len(victims) == 1
    assert len(victims.pop()) == 1


def test_the_message_of_a_group_quotes_the_first_real_reason() -> None:
    """Not that a like task has failed before and is skipped."""
    mirror = world(
        [queue("root").build(), queue().build(), node("n").offer(cpu=1, memory="16Gi").build()],
        pod_group("g").members(3).build(),
        [pod(f"p{at}").group("g").role("w").request(cpu=2, memory="1Gi").build() for at in range(3)],
    )
    result = run_cycle(mirror, policy("priority", "gang", "predicates", "nodeorder", actions="allocate"))
    (group,) = result.pod_groups
    told = " ".join(condition.message for condition in group.status.conditions)
    assert "Insufficient cpu" in told
    assert "skip" not in told + " ".join(event.message for event in result.events)
    assert all("skip" not in update.message for update in result.pods)
