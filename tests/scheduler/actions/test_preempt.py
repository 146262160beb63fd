"""preempt (spec 05 section 11.7), in normal and in topology-aware mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from stromboli.api import core, names
from stromboli.scheduler.actions import dry_runs
from stromboli.scheduler.actions.victims import VictimQueue
from stromboli.scheduler.core.plugin import Filter, Hooks
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.testing.builders import PodBuilder, node, pod, pod_group, priority_class, queue
from tests.scheduler.core.worlds import audit, evicted, open_cycle, picture, plugin_of, policy, run_cycle, world

CLASSES = [priority_class("low", 10), priority_class("high", 100000)]
PLUGINS = ("conformance", "gang", "priority", "proportion")
TOPOLOGY_AWARE = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100}


def running(name: str, group: str = "pg1", cpu: int = 1, where: str = "n1", *, preemptable: bool = True) -> PodBuilder:
    flag = "true" if preemptable else "false"
    builder = pod(name).group(group).request(cpu=cpu, memory="1G").on(where)
    return builder.annotate(**{names.PREEMPTABLE: flag})


def waiting(name: str, group: str = "pg2", cpu: int = 1) -> PodBuilder:
    return pod(name).group(group).request(cpu=cpu, memory="1G")


@dataclass(frozen=True)
class Case:
    objects: Sequence[core.Object]
    want: list[str]
    capability: int | None = None
    modes: tuple[bool, ...] = (False, True)
    plugins: tuple[str, ...] = PLUGINS
    arguments: dict[str, object] = field(default_factory=dict)


def groups(low: int = 1, high: int = 1) -> list[core.Object]:
    return [
        pod_group("pg1").queue("q1").members(low).priority_class("low").build(),
        pod_group("pg2").queue("q1").members(high).priority_class("high").build(),
    ]


def big(cpu: int, **more: int) -> core.Node:
    return node("n1").offer(cpu=cpu, memory="20G", **more).build()


CASES = {
    "a job waits while there is room": Case(
        [
            big(10),
            pod_group("pg1").queue("q1").members(3).build(),
            running("a").build(),
            running("b").build(),
            waiting("c", "pg1").build(),
        ],
        [],
    ),
    "all satisfied": Case([big(2), *groups(), running("a").build(), running("b", "pg2").build()], []),
    "only the preemptable goes": Case(
        [
            big(2),
            *groups(),
            running("a").build(),
            running("b", preemptable=False).build(),
            waiting("c").build(),
            waiting("d").build(),
        ],
        ["a"],
    ),
    "as many as are needed": Case(
        [
            big(6),
            *groups(),
            running("a").build(),
            running("b").build(),
            running("c", preemptable=False).build(),
            waiting("d", cpu=5).build(),
        ],
        ["a", "b"],
    ),
    "a queue at its limit": Case(
        [big(12), *groups(low=0), running("a", cpu=3).build(), waiting("b", cpu=3).build()], ["a"], capability=4
    ),
    "a gang at its minimum": Case(
        [big(12), *groups(), running("a", cpu=3).build(), waiting("b", cpu=3).build()], [], capability=4
    ),
    "best effort on a node full of pods": Case(
        [
            big(10, pods=1),
            *groups(low=0),
            pod("a").group("pg1").on("n1").build(),
            waiting("b", cpu=3).build(),
        ],
        ["a"],
        plugins=(*PLUGINS, "predicates"),
    ),
    "best effort takes from best effort only": Case(
        [
            big(10, pods=1),
            *groups(low=0),
            running("a").build(),
            pod("b").group("pg2").build(),
        ],
        [],
        plugins=(*PLUGINS, "predicates"),
    ),
    "a preemptor that never preempts": Case(
        [
            big(1),
            *groups(low=0),
            running("a").build(),
            waiting("b")._spec(preemption_policy="Never").build(),
        ],
        [],
    ),
    "not enough even with all victims gone": Case(
        [big(10), *groups(low=0), running("a").build(), running("b").build(), waiting("c", cpu=4).build()],
        [],
        capability=3,
        modes=(False,),
    ),
    "critical pods stay": Case(
        [
            big(1),
            *groups(low=0),
            running("a")._spec(priority_class_name="system-node-critical").build(),
            waiting("b").build(),
        ],
        [],
    ),
    "less important tasks of the same job go": Case(
        [
            big(1),
            pod_group("pg1").queue("q1").members(0).priority_class("low").build(),
            running("a").priority(1).build(),
            waiting("b", "pg1").priority(9).build(),
        ],
        ["a"],
        plugins=("conformance", "priority", "proportion"),
    ),
    "a gang takes all it needs or nothing": Case(
        [
            big(2),
            *groups(low=0, high=3),
            running("a").build(),
            running("b").build(),
            *[waiting(f"c{index}").build() for index in range(3)],
        ],
        [],
    ),
}


@pytest.mark.parametrize(
    ("case", "topology_aware"),
    [
        pytest.param(case, mode, id=f"{name}, {'topology-aware' if mode else 'normal'}")
        for name, case in CASES.items()
        for mode in case.modes
    ],
)
def test_case(case: Case, topology_aware: bool) -> None:
    limited = queue("q1") if case.capability is None else queue("q1").cap(cpu=case.capability)
    mirror = world(CLASSES, limited.build(), case.objects)
    arguments = TOPOLOGY_AWARE if topology_aware else {}
    result = run_cycle(mirror, policy(*case.plugins, actions="allocate preempt", preempt=arguments))
    assert evicted(result) == case.want
    assert result.problems == []
    audit(mirror)


def test_a_pod_that_evicted_gets_a_nominated_node() -> None:
    mirror = world(CLASSES, queue("q1").build(), big(1), groups(low=0), running("a").build(), waiting("b").build())
    result = run_cycle(mirror, policy(*PLUGINS, actions="allocate preempt"))
    (told,) = [update for update in result.pods if update.task.name == "b"]
    assert told.nominated_node == "n1"
    assert told.message.endswith("once resource is released and minAvailable is satisfied")


def test_of_a_gang_that_can_do_without_one_the_least_important_goes() -> None:
    mirror = world(
        CLASSES,
        queue().build(),
        node("n1").offer(cpu=3, memory="8G").build(),
        pod_group("pg1").members(2).priority_class("low").phase("Running").build(),
        [running(name).priority(priority).build() for name, priority in (("a", 9), ("b", 1), ("c", 5))],
        pod_group("pg2").members(1).priority_class("high").build(),
        waiting("new").priority(9).build(),
    )
    assert evicted(run_cycle(mirror, policy("gang", actions="preempt"))) == ["b"]


def test_without_starving_jobs_nothing_is_evicted() -> None:
    mirror = world(CLASSES, queue("q1").build(), big(1), groups(low=0), running("a").build(), waiting("b").build())
    assert evicted(run_cycle(mirror, policy("conformance", actions="allocate preempt"))) == []


@pytest.mark.parametrize(("shard_mode"), ["hard", "soft"])
def test_the_own_shard_comes_first(shard_mode: str) -> None:
    nodes = [node(name).offer(cpu=1, memory="9G").build() for name in ("n2", "n1")]
    victims = [running(f"on-{name}", where=name).build() for name in ("n2", "n1")]
    mirror = world(CLASSES, queue("q1").build(), nodes, groups(low=0), victims, waiting("b").build())
    wanted = policy(*PLUGINS, actions="allocate preempt")
    result = run_cycle(mirror, wanted, shard=frozenset({"n1"}), shard_mode=shard_mode)
    assert evicted(result) == ["on-n1"]


NEVER = Reason("never", Code.UNRESOLVABLE)


def test_nodes_that_eviction_cannot_help_are_not_tried() -> None:
    filter_ = Filter("f", [NEVER], lambda _, rows: np.ones(len(rows), dtype=np.uint8))
    mirror = world(CLASSES, queue("q1").build(), big(1), groups(low=0), running("a").build(), waiting("b").build())
    plugins = {"test": plugin_of(Hooks(filters=[filter_]))}
    assert evicted(run_cycle(mirror, policy(*PLUGINS, "test", actions="allocate preempt"), plugins=plugins)) == []


class TestNominatedNodes:
    """Who may preempt although a node has been promised (spec 05 section 11.4)."""

    def run(self, nominated: str, *more: core.Object, cpu: int = 1) -> list[str]:
        mirror = world(
            CLASSES,
            queue("q1").build(),
            node("n1").offer(cpu=1, memory="9G").build(),
            groups(low=0),
            running("a").build(),
            waiting("b", cpu=cpu).priority(5).nominated(nominated).build(),
            more,
        )
        return evicted(run_cycle(mirror, policy(*PLUGINS, actions="preempt")))

    def test_a_promised_node_that_is_gone_forbids_it(self) -> None:
        assert self.run("gone") == []

    def test_a_promised_node_that_takes_the_pod_forbids_it(self) -> None:
        assert self.run("n1") == []


class TestDryRuns:
    def choose(self, *victims: tuple[str, str, int]) -> list[str]:
        """Victims as (name, node, pod priority); who goes for one pod."""
        where = sorted({victim[1] for victim in victims})
        mirror = world(
            CLASSES,
            queue("q1").build(),
            [node(name).offer(cpu=2, memory="9G").build() for name in where],
            groups(low=0),
            [running(name, where=target).priority(priority).build() for name, target, priority in victims],
            waiting("b", cpu=2).build(),
        )
        wanted = policy(*PLUGINS, actions="allocate preempt", preempt=TOPOLOGY_AWARE)
        return evicted(run_cycle(mirror, wanted))

    def test_the_lowest_highest_priority_goes(self) -> None:
        assert self.choose(("a", "n1", 9), ("b1", "n2", 1), ("b2", "n2", 2)) == ["b1", "b2"]

    def test_then_the_smallest_sum(self) -> None:
        assert self.choose(("a1", "n1", 5), ("a2", "n1", 5), ("b1", "n2", 5), ("b2", "n2", 1)) == ["b1", "b2"]

    def test_then_the_fewest(self) -> None:
        assert self.choose(("a1", "n1", 5), ("a2", "n1", -(2**31)), ("b1", "n2", 5)) == ["b1"]

    def test_a_dry_run_leaves_no_trace(self) -> None:
        mirror = world(
            CLASSES,
            queue("q1").build(),
            big(2),
            groups(low=0),
            [running(name).build() for name in "ab"],
            waiting("c", cpu=1).build(),
        )
        cycle = open_cycle(mirror, policy(*PLUGINS))
        before = picture(mirror)
        task = mirror.tasks["ns/c"]
        found = dry_runs.candidates(cycle, task, [0], lambda other: other.status == TaskStatus.RUNNING, 1)
        assert picture(mirror) == before
        assert [[victim.name for victim in each.victims] for each in found] == [["b"]]


def test_who_goes_first_is_decided_by_job_then_task() -> None:
    """Spec 04 section 35: equal jobs, task priorities 100 and 1: the priority-1 task first."""
    mirror = world(
        queue("q1").build(),
        queue("q2").born(1).build(),
        CLASSES,
        pod_group("pg1").queue("q1").build(),
        pod_group("pg2").queue("q1").priority_class("high").build(),
        pod_group("pg3").queue("q2").build(),
        running("keep").priority(100).build(),
        running("go").priority(1).build(),
        running("important", "pg2").priority(1).build(),
        running("other", "pg3").build(),
        running("orphan", "lost").build(),
    )
    cycle = open_cycle(mirror, policy("priority"))
    mirror.tasks["ns/orphan"].job = None
    tasks = [mirror.tasks[f"ns/{name}"] for name in ("keep", "important", "go", "other", "orphan")]
    order = VictimQueue(cycle, tasks, mirror.jobs["ns/pg2"])
    popped = [order.pop().name for _ in tasks]
    assert not order
    assert popped == ["orphan", "other", "go", "keep", "important"]
