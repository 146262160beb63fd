"""gang, by the table of spec 06 section 5."""

from __future__ import annotations

import pytest

from stromboli.api import core
from stromboli.scheduler.core.plugin import Eviction, EvictionContext
from stromboli.testing.builders import PodGroupBuilder, node, pod, pod_group, queue
from tests.scheduler.plugins.sessions import Session


def members(group: PodGroupBuilder, *, running: int = 0, pending: int = 0, role: str = "") -> list[core.Pod]:
    pods = [pod(f"{group.name}-{role}r{at}").group(group.name).on("n") for at in range(running)]
    pods += [pod(f"{group.name}-{role}p{at}").group(group.name).request(cpu=1) for at in range(pending)]
    return [(one.role(role) if role else one).build() for one in pods]


def session(*groups: PodGroupBuilder, pods: list[core.Pod]) -> Session:
    given = [group.build() for group in groups]
    return Session([queue().build(), node("n").offer(cpu=8, memory="8Gi").build()], given, pods, plugins=["gang"])


GROUP = pod_group("g")

VALID = {
    "as many tasks as the minimum": (GROUP.members(2), members(GROUP, pending=2), None),
    "running tasks count": (GROUP.members(2), members(GROUP, running=1, pending=1), None),
    "too few tasks": (
        GROUP.members(3),
        members(GROUP, running=1, pending=1),
        ("NotEnoughTasks", "Not enough valid tasks for gang-scheduling, valid: 2, min: 3"),
    ),
    "a role has too few tasks": (
        GROUP.members(2, ps=1, worker=1),
        members(GROUP, pending=2, role="ps"),
        ("NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling"),
    ),
    "roles do not matter when the minimum is below their sum": (
        GROUP.members(1, ps=1, worker=1),
        members(GROUP, pending=2, role="ps"),
        None,
    ),
}


@pytest.mark.parametrize("name", VALID)
def test_a_job_is_valid_with_enough_tasks(name: str) -> None:
    group, pods, want = VALID[name]
    opened = session(group, pods=pods)
    invalid = opened.combination.job_valid(opened.job("g"))
    assert (invalid and (invalid.reason, invalid.message)) == want


def test_gangs_that_are_not_ready_are_served_first() -> None:
    ready, waiting = pod_group("a").members(1), pod_group("b").members(1)
    opened = session(ready, waiting, pods=[*members(ready, running=1), *members(waiting, pending=1)])
    assert opened.job_order() == ["b", "a"]


def test_what_a_gang_has_beyond_its_minimum_may_be_evicted_first_come_first_gone() -> None:
    group, other = pod_group("g").members(2), pod_group("other").members(1)
    opened = session(group, other, pods=[*members(group, running=3), *members(other, pending=1)])
    assert opened.preemptable("other-p0", "g-r2", "g-r0", "g-r1") == ["g-r2"]
    assert opened.reclaimable("other-p0", "g-r1", "g-r2") == ["g-r1"]


def test_gang_actions_may_take_everything() -> None:
    opened = session(GROUP.members(2), pods=members(GROUP, running=2))
    context = EvictionContext(Eviction.GANG_PREEMPT, opened.job("g"), "")
    assert len(opened.combination.unified_evictable(context, opened.tasks("g-r0", "g-r1"))) == 2


def test_readiness_waits_for_the_minimum_and_for_each_role() -> None:
    group = GROUP.members(2, ps=1, worker=1)
    pods = [*members(group, running=2, role="ps"), *members(group, pending=1, role="worker")]
    opened = session(group, pods=pods)
    assert not opened.combination.job_ready(opened.job("g"))
    assert not opened.combination.job_pipelined(opened.job("g"))
    opened.place("g-workerp0", "n")
    assert opened.combination.job_ready(opened.job("g"))
    assert opened.combination.job_pipelined(opened.job("g"))


def test_per_task_minimums_play_no_part_in_starving() -> None:
    group = GROUP.members(2, ps=1, worker=1)
    opened = session(group, pods=[*members(group, running=2, role="ps"), *members(group, pending=1, role="worker")])
    assert not opened.combination.job_starving(opened.job("g"))


def test_the_end_of_a_cycle_says_what_is_missing() -> None:
    group, ready = GROUP.members(3), pod_group("ready").members(1)
    opened = session(group, ready, pods=[*members(group, running=1, pending=2), *members(ready, running=1)])
    result = opened.cycle.close()
    conditions = {update.job_id: update.status.conditions for update in result.pod_groups}
    (missing,) = conditions["ns/g"]
    assert (missing.type, missing.reason) == ("Unschedulable", "NotEnoughResources")
    assert missing.message == (
        "2/3 tasks in gang unschedulable: pod group is not ready, 1 Running, 2 Pending, 3 minAvailable; "
        "Pending: 2 Unschedulable"
    )
    (scheduled,) = conditions["ns/ready"]
    assert (scheduled.type, scheduled.reason, scheduled.message) == (
        "Scheduled",
        "tasks in gang are ready to be scheduled",
        "",
    )
    counts = {sample.name: sample.value for sample in result.samples}
    assert counts["unschedule_job_count"] == 1
    assert counts["unschedule_task_count"] == 2


def test_an_idle_cycle_looks_at_no_settled_job() -> None:
    group = pod_group("g").members(1).phase("Running")
    opened = session(group, pods=members(group, running=1))
    opened.cycle.close()
    again = Session(mirror=opened.mirror, plugins=["gang"])
    assert list(again.view.unsettled()) == []
    assert again.cycle.close().pod_groups == []
