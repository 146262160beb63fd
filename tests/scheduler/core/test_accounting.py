"""A move in one step leaves the same books as taking off and putting on again."""

from __future__ import annotations

from itertools import permutations

import pytest

from stromboli.scheduler.core.accounting import Holding
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import Node, Task
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import picture, world


def running() -> tuple[Mirror, Task, Node]:
    """A pod that uses a port, on a node beside another one that uses the same."""
    mirror = world(
        node("n").offer(cpu=8, memory="8G").build(),
        queue("default").build(),
        pod_group("g").members(1).build(),
        [
            pod(name).group("g").role("r").request(cpu=2, memory="1G").host_port(80).on("n").build()
            for name in ("p", "other")
        ],
    )
    return mirror, mirror.tasks["ns/p"], mirror.nodes_by_name["n"]


@pytest.mark.parametrize(("old", "new"), list(permutations(Holding, 2)))
def test_changing_how_a_task_weighs_is_taking_its_weight_off_and_putting_it_on(old: Holding, new: Holding) -> None:
    pictures = []
    for at_once in (True, False):
        mirror, task, where = running()
        mirror.ledger.reweigh(task, Holding.HELD, old)
        if at_once:
            mirror.ledger.reweigh(task, old, new)
        else:
            mirror.ledger.unweigh(task, where, old)
            mirror.ledger.weigh(task, where, new)
        pictures.append(picture(mirror))
    assert pictures[0] == pictures[1]


def test_a_change_of_weight_is_told_once_to_those_who_follow_the_node() -> None:
    mirror, task, where = running()
    told = len(mirror.nodes.log)
    mirror.ledger.reweigh(task, Holding.HELD, Holding.EVICTED)
    assert [row for row, _, _ in mirror.nodes.log[told:]] == [where.row]


@pytest.mark.parametrize(("old", "new"), list(permutations(TaskStatus, 2)))
def test_moving_between_statuses_is_leaving_and_joining(old: TaskStatus, new: TaskStatus) -> None:
    pictures = []
    for at_once in (True, False):
        mirror, task, _ = running()
        job, sub_job = task.job, task.sub_job
        assert job is not None
        mirror.ledger.set_status(task, old)
        if at_once:
            mirror.ledger.set_status(task, new)
        else:
            mirror.ledger.leave(task)
            task.status, task.sub_job = new, sub_job
            mirror.ledger.join(task, job)
        pictures.append(picture(mirror))
    assert pictures[0] == pictures[1]
