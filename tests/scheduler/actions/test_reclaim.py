"""reclaim (spec 05 section 12) and shuffle (section 17)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from stromboli.api import core, names
from stromboli.scheduler.core.plugin import Hooks
from stromboli.testing.builders import PodBuilder, node, pod, pod_group, priority_class, queue
from tests.scheduler.core.worlds import audit, evicted, plugin_of, policy, run_cycle, world

PLUGINS = ("conformance", "gang", "priority", "proportion")
CLASSES = [priority_class("low", 1), priority_class("mid", 5), priority_class("high", 9)]


def running(name: str, group: str, cpu: int = 1, memory: str = "1G", *, preemptable: bool = True) -> PodBuilder:
    builder = pod(name).group(group).request(cpu=cpu, memory=memory).on("n1")
    return builder.annotate(**{names.PREEMPTABLE: "true" if preemptable else "false"})


def waiting(name: str, group: str, cpu: int = 1) -> PodBuilder:
    return pod(name).group(group).request(cpu=cpu, memory="1G")


def group(name: str, in_queue: str, minimum: int = 0, priority: str = "low") -> core.PodGroup:
    return pod_group(name).queue(in_queue).members(minimum).priority_class(priority).build()


def big(cpu: int, memory: str = "20G") -> core.Node:
    return node("n1").offer(cpu=cpu, memory=memory).build()


QUEUES = [queue("q1").build(), queue("q2").born(1).build(), queue("q3").born(2).build()]


@dataclass(frozen=True)
class Case:
    objects: Sequence[core.Object]
    want: list[str]


CASES = {
    "only the preemptable goes": Case(
        [
            big(3),
            *QUEUES,
            group("pg1", "q1"),
            group("pg2", "q2", 1),
            running("a", "pg1", preemptable=False).build(),
            running("b", "pg1").build(),
            running("c", "pg1", preemptable=False).build(),
            waiting("d", "pg2").build(),
        ],
        ["b"],
    ),
    "not from a queue that does not give back": Case(
        [
            big(1),
            queue("q1").unreclaimable().build(),
            queue("q2").build(),
            group("pg1", "q1"),
            group("pg2", "q2", 1),
            running("a", "pg1").build(),
            waiting("b", "pg2").build(),
        ],
        [],
    ),
    "a preemptor that never preempts": Case(
        [
            big(1),
            *QUEUES,
            group("pg1", "q1"),
            group("pg2", "q2", 1),
            running("a", "pg1").build(),
            waiting("b", "pg2")._spec(preemption_policy="Never").build(),
        ],
        [],
    ),
    "a closed queue takes nothing": Case(
        [
            big(1),
            queue("q1").build(),
            queue("q2").state("Closed").build(),
            group("pg1", "q1"),
            group("pg2", "q2", 1),
            running("a", "pg1").build(),
            waiting("b", "pg2").build(),
        ],
        [],
    ),
    "nothing goes when there is room": Case(
        [
            big(10),
            *QUEUES,
            group("pg1", "q1"),
            group("pg2", "q2", 1),
            running("a", "pg1", 2).build(),
            waiting("b", "pg2", 3).build(),
        ],
        [],
    ),
    "a gang at its minimum stays": Case(
        [
            big(1),
            *QUEUES,
            group("pg1", "q1", 1),
            group("pg2", "q2", 1),
            running("a", "pg1").build(),
            waiting("b", "pg2").build(),
        ],
        [],
    ),
    "a gang that cannot have all takes nothing": Case(
        [
            big(2),
            *QUEUES,
            group("pg1", "q1"),
            group("pg2", "q2", 2),
            running("a", "pg1").build(),
            running("b", "pg1", preemptable=False).build(),
            waiting("c", "pg2").build(),
            waiting("d", "pg2").build(),
        ],
        [],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_case(case: Case) -> None:
    mirror = world(CLASSES, case.objects)
    result = run_cycle(mirror, policy(*PLUGINS, actions="allocate reclaim"))
    assert evicted(result) == case.want
    assert {eviction.reason for eviction in result.evictions} <= {"reclaim"}
    audit(mirror)


def test_nodes_are_walked_in_list_order() -> None:
    nodes = [node(name).offer(cpu=1, memory="9G").build() for name in ("n2", "n1")]
    victims = [pod(f"on-{name}").group("pg1").request(cpu=1).on(name).build() for name in ("n1", "n2")]
    mirror = world(
        CLASSES, QUEUES, nodes, group("pg1", "q1"), group("pg2", "q2", 1), victims, waiting("x", "pg2").build()
    )
    plugins = {"test": plugin_of(Hooks(reclaimable=lambda _, candidates: (candidates, 1)))}  # type: ignore[arg-type, return-value]
    result = run_cycle(mirror, policy("gang", "test", actions="reclaim"), plugins=plugins)
    assert evicted(result) == ["on-n2"]


def test_shuffle_evicts_exactly_whom_plugins_name() -> None:
    pods = [
        pod(f"p{index}").group("pg1").request(cpu=1).priority(10 if index % 2 else 1).on("n1").build()
        for index in range(7)
    ]
    mirror = world(QUEUES, big(9), group("pg1", "q1"), pods, waiting("idle", "pg1").priority(10).build())
    hooks = Hooks(victim_tasks=[lambda candidates: [task for task in candidates if task.priority == 10]])
    result = run_cycle(mirror, policy("test", actions="shuffle"), plugins={"test": plugin_of(hooks)})
    assert evicted(result) == ["p1", "p3", "p5"]
    assert {eviction.reason for eviction in result.evictions} == {"shuffle"}
    audit(mirror)
