"""allocate: the cases of spec 05 section 9, and what must hold whatever the cluster looks like."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import core, names
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Hooks, PlacementRefused
from stromboli.scheduler.core.policy import DEFAULT_POLICY, PluginOption
from stromboli.scheduler.core.records import Node, Task
from stromboli.testing.builders import PodBuilder, node, pod, pod_group, queue
from tests.scheduler.core.worlds import audit, binds, plugin_of, policy, run_cycle, world

POLICY = policy("gang", "drf", "proportion", "predicates", "nodeorder", actions="enqueue allocate")


def member(name: str, group: str, cpu: int = 1, role: str = "") -> PodBuilder:
    builder = pod(name).group(group).request(cpu=cpu, memory="1G")
    return builder.role(role).label(**{names.TASK_SPEC: role}) if role else builder


@dataclass(frozen=True)
class Case:
    objects: list[core.Object]
    want: dict[str, str]
    problems: list[str] = field(default_factory=list)


def one_queue(*objects: core.Object) -> list[core.Object]:
    return [queue("c1").build(), *objects]


CASES = {
    "a pod goes where its selector lets it": Case(
        one_queue(
            node("n1").offer(cpu=2, memory="4G").label(kind="worker").build(),
            pod_group("pg").queue("c1").members(1).build(),
            member("p1", "pg").select(kind="master").build(),
            member("p2", "pg").select(kind="worker").build(),
        ),
        {"p2": "n1"},
    ),
    "one of each role": Case(
        one_queue(
            node("n1").offer(cpu=1, memory="4G").label(kind="m").build(),
            node("n2").offer(cpu=1, memory="4G").label(kind="w").build(),
            pod_group("pg").queue("c1").members(2, m=1, w=1).build(),
            *[member(f"p{index}", "pg", role="m").select(kind="m").build() for index in (0, 1)],
            *[member(f"p{index}", "pg", role="w").select(kind="w").build() for index in (2, 3)],
        ),
        {"p0": "n1", "p2": "n2"},
    ),
    "a role that cannot have its minimum keeps all waiting": Case(
        one_queue(
            node("n1").offer(cpu=1, memory="4G").label(kind="m").build(),
            node("n2").offer(cpu=2, memory="4G").label(kind="w").build(),
            pod_group("pg").queue("c1").members(2, m=2, w=0).build(),
            *[member(f"p{index}", "pg", role="m").select(kind="m").build() for index in (0, 1)],
            *[member(f"p{index}", "pg", role="w").select(kind="w").build() for index in (2, 3)],
        ),
        {},
    ),
    "two pods on one node": Case(
        one_queue(
            node("n1").offer(cpu=2, memory="4G").build(),
            pod_group("pg").queue("c1").members(0).build(),
            member("p1", "pg").build(),
            member("p2", "pg").build(),
        ),
        {"p1": "n1", "p2": "n1"},
    ),
    "a large queue does not hold up a small one": Case(
        [
            node("n1").offer(cpu=2, memory="4G").build(),
            queue("c1").build(),
            queue("c2").born(1).build(),
            pod_group("pg1").queue("c1").members(1).build(),
            pod_group("pg2").queue("c2").members(1).build(),
            member("big", "pg1", 3).build(),
            member("small", "pg2", 1).build(),
        ],
        {"small": "n1"},
    ),
    "a gang is all or nothing": Case(
        one_queue(
            node("n1").offer(cpu=2, memory="9G").build(),
            pod_group("pg").queue("c1").members(3).build(),
            *[member(f"p{index}", "pg").build() for index in range(3)],
        ),
        {},
    ),
    "gates keep pods back": Case(
        one_queue(
            node("n1").offer(cpu=2, memory="9G").build(),
            pod_group("pg").queue("c1").members(1).build(),
            member("gated", "pg").gated("wait").build(),
            member("free", "pg").build(),
        ),
        {"free": "n1"},
    ),
    "a closed queue gives nothing": Case(
        [
            node("n1").offer(cpu=2, memory="9G").build(),
            queue("c1").state("Closed").build(),
            pod_group("pg").queue("c1").members(1).build(),
            member("p", "pg").build(),
        ],
        {},
    ),
    "the promised node comes first": Case(
        one_queue(
            node("n1").offer(cpu=9, memory="9G").build(),
            node("n2").offer(cpu=2, memory="9G").build(),
            pod_group("pg").queue("c1").members(1).build(),
            member("p", "pg").nominated("n2").build(),
        ),
        {"p": "n2"},
    ),
    "a promised node that is gone is forgotten": Case(
        one_queue(
            node("n1").offer(cpu=9, memory="9G").build(),
            pod_group("pg").queue("c1").members(1).build(),
            member("p", "pg").nominated("n2").build(),
        ),
        {"p": "n1"},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_case(case: Case) -> None:
    mirror = world(case.objects)
    result = run_cycle(mirror, POLICY)
    assert binds(result) == case.want
    assert result.problems == []
    audit(mirror)


def test_a_job_without_pending_tasks_does_not_hide_the_next_of_its_queue() -> None:
    mirror = world(
        node("n1").offer(cpu=5, memory="9G").build(),
        queue("c1").build(),
        pod_group("done").queue("c1").members(1).phase("Running").build(),
        pod("r").group("done").request(cpu=1).on("n1").build(),
        pod_group("next").queue("c1").members(1).born(1).build(),
        member("p", "next").build(),
    )
    assert binds(run_cycle(mirror, POLICY)) == {"p": "n1"}


def test_without_enqueue_a_pending_group_is_admitted_by_allocate() -> None:
    mirror = world(
        node("n1").offer(cpu=1).build(),
        queue().build(),
        pod_group("g").members(1).phase("Pending").build(),
        pod("p").group("g").request(cpu=1).build(),
    )
    assert binds(run_cycle(mirror, policy("gang", actions="allocate"))) == {"p": "n1"}


def test_a_group_refused_by_enqueue_gets_nothing() -> None:
    mirror = world(
        node("n1").offer(cpu=1).build(),
        queue().build(),
        pod_group("g").members(1).phase("Pending").reserve(cpu=9).build(),
        pod("p").group("g").request(cpu=1).build(),
    )
    assert binds(run_cycle(mirror, policy("gang", "overcommit", actions="enqueue allocate"))) == {}


def test_a_ready_job_gets_one_task_a_turn() -> None:
    mirror = world(
        node("n1").offer(cpu=4).build(),
        queue().build(),
        [pod_group(name).members(1).build() for name in "ab"],
        [pod(f"{name}{index}").group(name).request(cpu=1).born(index).build() for name in "ab" for index in range(4)],
    )
    bound = binds(run_cycle(mirror, policy("gang", "drf", actions="allocate")))
    assert Counter(name[0] for name in bound) == {"a": 2, "b": 2}


def test_what_only_waits_holds_its_place_in_the_cycle_and_is_not_bound() -> None:
    mirror = world(
        node("n1").offer(cpu=1).build(),
        queue().build(),
        pod("leaving").request(cpu=1).on("n1").deleting().build(),
        pod_group("first").members(1).build(),
        pod_group("second").members(1).born(1).build(),
        pod("a").group("first").request(cpu=1).build(),
        pod("b").group("second").request(cpu=1).build(),
    )
    result = run_cycle(mirror, policy("gang", actions="allocate"))
    assert result.binds == []
    told = {update.task.name: update.message for update in result.pods}
    assert (
        told["a"] == "Pod ns/a can possibly be assigned to n1, once resource is released and minAvailable is satisfied"
    )
    assert told["b"] == "0/1 nodes are unavailable: 1 Insufficient cpu."


def test_a_plugin_that_refuses_a_placement_is_named_and_the_next_task_tried() -> None:
    def refuse(task: Task, target: Node) -> None:
        if task.name == "a":
            raise PlacementRefused("no volume")

    mirror = world(
        node("n1").offer(cpu=9).build(),
        queue().build(),
        pod_group("g").members(1).build(),
        [pod(name).group("g").request(cpu=1).build() for name in "ab"],
    )
    plugins = {"test": plugin_of(Hooks(on_allocate=refuse))}
    result = run_cycle(mirror, policy("gang", "test", actions="allocate"), plugins=plugins)
    assert binds(result) == {"b": "n1"}
    assert result.problems == ["ns/a could not be placed on n1: no volume"]
    audit(mirror)


def test_a_failed_preparation_stops_the_gang_and_is_told_for_every_node() -> None:
    mirror = world(
        [node(name).offer(cpu=9).build() for name in ("n1", "n2")],
        queue().build(),
        pod_group("g").members(1).build(),
        pod("p").group("g").request(cpu=1).build(),
    )
    plugins = {"test": plugin_of(Hooks(prepare=lambda _: "claim is lost"))}
    result = run_cycle(mirror, policy("gang", "test", actions="allocate"), plugins=plugins)
    assert [update.message for update in result.pods] == ["0/2 nodes are unavailable: 2 claim is lost."]


def test_a_role_that_failed_is_not_tried_again() -> None:
    mirror = world(
        node("n1").offer(cpu=1).build(),
        queue().build(),
        pod_group("g").members(1).build(),
        [pod(f"p{index}").group("g").role("w").request(cpu=2).build() for index in range(3)],
    )
    result = run_cycle(mirror, policy("gang", actions="allocate"))
    assert {update.message for update in result.pods} == {
        "0/1 nodes are unavailable: 1 Insufficient cpu.",
        "Task p1 with role spec w has already predicated failed, skip",
        "Task p2 with role spec w has already predicated failed, skip",
    }


@pytest.mark.parametrize(("enabled", "opt_in", "want"), [(True, True, 1), (True, False, 0), (False, True, 0)])
def test_queue_gates_are_removed_for_those_that_opt_in(enabled: bool, opt_in: bool, want: int) -> None:
    gated = pod("p").group("g").request(cpu=1).gated(names.QUEUE_ALLOCATION_GATE)
    if opt_in:
        gated = gated.annotate(**{names.QUEUE_ALLOCATION_GATE: "true"})
    mirror = world(node("n").offer(cpu=1).build(), queue().build(), pod_group("g").members(1).build(), gated.build())
    options = {"feature-gates": {"SchedulingGatesQueueAdmission": enabled}}
    result = run_cycle(mirror, policy("gang", actions="allocate"), options=options)
    assert len(result.gate_removals) == want
    assert result.binds == []


def test_what_no_node_is_to_blame_for_is_reported() -> None:
    mirror = world(
        node("n1").offer(cpu=9).build(),
        queue("closed").state("Closed").build(),
        queue("full").build(),
        pod_group("a").queue("closed").members(1).build(),
        pod("a-w-0").group("a").request(cpu=2).build(),
        pod_group("b").queue("full").members(1).build(),
        pod("b-w-0").group("b").request(cpu=1).build(),
    )
    plugins = {"test": plugin_of(Hooks(overused=lambda queue: queue.name == "full"))}
    result = run_cycle(mirror, policy("gang", "proportion", "test", actions="allocate"), plugins=plugins)
    assert {report.job_id: report.notes for report in result.reports} == {
        "ns/a": ("queue closed is Closed: it takes no work until it is Open",),
        "ns/b": ("queue full already holds all it deserves and gets nothing more in this cycle",),
    }


SHARD_NODES = [node(name).offer(cpu=cpu).build() for name, cpu in (("n1", 10), ("n2", 2), ("n3", 20), ("n4", 5))]


@pytest.mark.parametrize("mode", ["hard", "soft"])
def test_shards(mode: str) -> None:
    mirror = world(
        SHARD_NODES, queue().build(), pod_group("g").members(1).build(), pod("p").group("g").request(cpu=1).build()
    )
    result = run_cycle(
        mirror, policy("gang", "nodeorder", actions="allocate"), shard=frozenset({"n1", "n4"}), shard_mode=mode
    )
    assert binds(result) == {"p": "n1"}


@st.composite
def clusters(draw: st.DrawFn) -> list[core.Object]:
    amounts = st.integers(1, 6)
    objects: list[core.Object] = [
        node(f"n{index}").offer(cpu=draw(amounts), memory=f"{draw(amounts)}G", pods=draw(amounts)).build()
        for index in range(draw(st.integers(1, 4)))
    ]
    objects += [queue(name).weight(draw(st.integers(1, 3))).build() for name in ("q1", "q2")]
    for index in range(draw(st.integers(1, 5))):
        size = draw(st.integers(1, 4))
        group = pod_group(f"g{index}").queue(draw(st.sampled_from(["q1", "q2"]))).born(index)
        objects.append(group.members(draw(st.integers(0, size))).phase("Pending").build())
        for each in range(size):
            builder = pod(f"g{index}-w-{each}").group(f"g{index}")
            if draw(st.integers(0, 4)):
                builder = builder.request(cpu=draw(st.integers(1, 3)), memory=f"{draw(st.integers(1, 3))}G")
            if not draw(st.integers(0, 5)):
                builder = builder.on(f"n{draw(st.integers(0, 3))}", draw(st.sampled_from(["Running", "Pending"])))
            if not draw(st.integers(0, 9)):
                builder = builder.deleting()
            objects.append(builder.build())
    return objects


EVERYTHING = policy(
    "priority",
    PluginOption("gang"),
    "conformance",
    "overcommit",
    "drf",
    "predicates",
    "proportion",
    "nodeorder",
    actions="enqueue allocate backfill preempt reclaim",
)


@pytest.mark.parametrize("wanted", [DEFAULT_POLICY, EVERYTHING], ids=["default", "with evictions"])
@given(objects=clusters(), seed=st.sampled_from([None, 3]))
@settings(max_examples=60, deadline=None)
def test_no_node_is_overfilled_no_gang_is_split_and_the_books_agree(
    wanted: object, objects: list[core.Object], seed: int | None
) -> None:
    mirror = world(objects)
    overfull = {name for name, short in _short(mirror).items() if short}
    for number in range(2):
        result = run_cycle(mirror, wanted, seed=seed, session_id=f"s{number}")  # type: ignore[arg-type]
        assert result.problems == []
        audit(mirror)
        for bind in result.binds:
            assert not _short(mirror)[bind.node] or bind.node in overfull
        for job in mirror.session_jobs.values():
            if any(bind.task.job_id == job.id for bind in result.binds):
                assert job.is_ready, f"{job} was bound below its minimum"


def _short(mirror: Mirror) -> dict[str, bool]:
    return {
        known.name: bool((np.delete(mirror.nodes.idle[known.row], 2) < 0).any())
        for known in mirror.node_list
        if known is not None
    }


@given(clusters())
@settings(max_examples=40, deadline=None)
def test_the_same_cluster_decides_the_same(objects: list[core.Object]) -> None:
    first, second = (run_cycle(world(objects), EVERYTHING, seed=5) for _ in range(2))
    assert (first.binds, first.evictions, first.pod_groups) == (second.binds, second.evictions, second.pod_groups)
