"""What a group that fits nowhere is told, and that one about to start is told nothing of the kind."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.api import core
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.results import CycleResult
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import NOW, policy, run_cycle, world

POLICY = policy("gang", "predicates", actions="enqueue allocate backfill")


def fits(result: CycleResult) -> core.PodGroupCondition | None:
    conditions = [item for update in result.pod_groups for item in update.status.conditions if item.type == "Fits"]
    return conditions[0] if conditions else None


def gang(mirror: Mirror, size: int, cpu: int | str, memory: str = "1Mi") -> None:
    mirror.apply_pod_group(pod_group("g").members(size).build())
    for index in range(size):
        mirror.apply_pod(pod(f"g-w-{index}").group("g").request(cpu=cpu, memory=memory).build())


@dataclass(frozen=True)
class Case:
    cpu: int | str
    size: int
    reason: str
    says: str
    memory: str = "1Mi"


CASES = {
    "no node is large enough": Case(
        cpu=8,
        size=3,
        reason="NodesRefuse",
        says="g-w-0 asks for 8 cpu, and 4 is left on n1, which comes closest; "
        "ask for less, change selectors and tolerations, or add nodes that fit",
    ),
    "two resources are short": Case(
        cpu="4500m",
        memory="9Gi",
        size=1,
        reason="NodesRefuse",
        says="g-w-0 asks for 4500m cpu, and 4 is left, 9Gi memory, and 8Gi is left on n1, which comes closest; "
        "ask for less, change selectors and tolerations, or add nodes that fit",
    ),
    "some find room": Case(
        cpu=3,
        size=3,
        reason="GangIncomplete",
        says="1 of 3 tasks found a node; g-w-1 asks for 3 cpu, and 2 is left on n0, which comes closest; "
        "wait for room for the whole gang, lower minAvailable, or ask for less",
    ),
}


def cluster() -> Mirror:
    nodes = [node("n0").offer(cpu=2, memory="4Gi").build(), node("n1").offer(cpu=4, memory="8Gi").build()]
    return world(nodes, queue().build())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_missing_is_said_with_numbers(case: Case) -> None:
    mirror = cluster()
    gang(mirror, case.size, case.cpu, case.memory)
    result = run_cycle(mirror, POLICY)
    condition = fits(result)
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("False", case.reason, case.says)
    assert condition.message.startswith(result.reports[0].notes[-1])


def test_numbers_are_renewed_when_they_have_aged_and_the_condition_ends_when_the_group_fits() -> None:
    mirror = cluster()
    gang(mirror, 1, 8)
    run_cycle(mirror, POLICY)
    mirror.apply_node(node("n2").offer(cpu=6, memory="8Gi").build())
    soon = fits(run_cycle(mirror, POLICY, now=NOW + 5))
    assert soon is not None
    assert "4 is left on n1" in soon.message
    later = fits(run_cycle(mirror, POLICY, now=NOW + 60))
    assert later is not None
    assert "6 is left on n2" in later.message
    mirror.apply_node(node("n3").offer(cpu=8, memory="8Gi").build())
    placed = run_cycle(mirror, POLICY, now=NOW + 61)
    condition = fits(placed)
    assert placed.binds
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "Fits")


def test_what_was_short_once_is_not_told_when_something_else_is_in_the_way() -> None:
    mirror = cluster()
    gang(mirror, 1, 8)
    run_cycle(mirror, POLICY)
    for name in ("n0", "n1"):
        mirror.apply_node(node(name).offer(cpu=9, memory="9Gi").cordon().build())
    condition = fits(run_cycle(mirror, POLICY, now=NOW + 60))
    assert condition is not None
    assert condition.message == (
        "g-w-0: 0/2 nodes are unavailable: 2 node(s) were unschedulable; "
        "ask for less, change selectors and tolerations, or add nodes that fit"
    )


def test_a_node_that_something_else_speaks_against_does_not_come_close() -> None:
    mirror = cluster()
    mirror.apply_node(node("n2").offer(cpu=6, memory="8Gi").cordon().build())
    gang(mirror, 1, 8)
    condition = fits(run_cycle(mirror, POLICY))
    assert condition is not None
    assert "on n1, which comes closest" in condition.message


def test_the_cycle_that_binds_a_gang_warns_of_nothing() -> None:
    mirror = cluster()
    gang(mirror, 2, 1)
    result = run_cycle(mirror, POLICY)
    assert len(result.binds) == 2
    assert [event for event in result.events if event.type == "Warning"] == []
    assert result.reports == []


def test_a_ready_group_with_more_tasks_than_room_reports_without_warning() -> None:
    mirror = cluster()
    mirror.apply_pod_group(pod_group("g").members(1).build())
    for index in range(3):
        mirror.apply_pod(pod(f"g-w-{index}").group("g").request(cpu=3).build())
    result = run_cycle(mirror, POLICY)
    assert len(result.binds) == 1
    assert [event for event in result.events if event.type == "Warning"] == []
    assert [report.job_id for report in result.reports] == ["ns/g"]
