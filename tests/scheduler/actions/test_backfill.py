"""backfill (spec 05 section 10)."""

from __future__ import annotations

import numpy as np
import pytest

from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Filter, Hooks, PlacementRefused, Score
from stromboli.scheduler.core.reasons import Reason
from stromboli.scheduler.core.records import Node, Task
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.testing.builders import node, pod, pod_group, priority_class, queue
from tests.scheduler.core.worlds import audit, binds, open_cycle, plugin_of, policy, run_cycle, world


def test_best_effort_tasks_go_by_job_and_task_priority() -> None:
    mirror = world(
        node("n1").build(),
        queue().build(),
        [priority_class(f"p{value}", value) for value in (1, 2)],
        [pod_group(f"pg{value}").priority_class(f"p{value}").build() for value in (1, 2)],
        [
            pod(f"pg{value}-{priority}").group(f"pg{value}").priority(priority).build()
            for value in (1, 2)
            for priority in (1, 2, 3, 4)
        ],
        pod("asking").group("pg1").request(cpu=1).build(),
    )
    cycle = open_cycle(mirror, policy("priority", "gang"))
    for value in (1, 2):
        for priority in (2, 4):
            task = mirror.tasks[f"ns/pg{value}-{priority}"]
            cycle.journal.place(task, mirror.nodes_by_name["n1"], TaskStatus.PIPELINED)
    cycle.execute("backfill")
    result = cycle.close()
    assert list(binds(result)) == [f"pg{value}-{priority}" for value in (2, 1) for priority in (4, 3, 2, 1)]
    audit(mirror)


def two_nodes(minimum: int = 1) -> Mirror:
    return world(
        node("n1").build(),
        node("n2").build(),
        queue().build(),
        pod_group("g").members(minimum).build(),
        pod("p").group("g").build(),
    )


def test_filters_and_scores_decide_where() -> None:
    second = Hooks(scores=[Score("second", lambda _, rows: rows.astype(np.float64))])
    assert binds(run_cycle(two_nodes(), policy("gang", "t"), plugins={"t": plugin_of(second, "t")})) == {"p": "n2"}
    refuse = Hooks(filters=[Filter("all", [Reason("no")], lambda _, rows: np.ones(len(rows), dtype=np.uint8))])
    result = run_cycle(two_nodes(), policy("gang", "t"), plugins={"t": plugin_of(refuse, "t")})
    assert [update.message for update in result.pods] == ["0/2 nodes are unavailable: 2 no."]


@pytest.mark.parametrize("mode", ["hard", "soft"])
def test_the_own_shard_comes_first(mode: str) -> None:
    result = run_cycle(two_nodes(), policy("gang"), shard=frozenset({"n2"}), shard_mode=mode)
    assert binds(result) == {"p": "n2"}


def test_a_failed_preparation_is_told_for_every_node() -> None:
    result = run_cycle(two_nodes(), policy("t"), plugins={"t": plugin_of(Hooks(prepare=lambda _: "lost"), "t")})
    assert [update.message for update in result.pods] == ["0/2 nodes are unavailable: 2 lost."]


def test_a_refused_placement_is_the_fit_error_of_its_node() -> None:
    def refuse(task: Task, target: Node) -> None:
        raise PlacementRefused("no volume")

    mirror = two_nodes()
    result = run_cycle(mirror, policy("t"), plugins={"t": plugin_of(Hooks(on_allocate=refuse), "t")})
    assert [update.message for update in result.pods] == ["0/1 nodes are unavailable: 1 no volume."]
    audit(mirror)


def test_gated_pods_and_groups_not_admitted_wait() -> None:
    mirror = world(
        node("n1").build(),
        queue().build(),
        pod_group("g").members(1).build(),
        pod("gated").group("g").gated("wait").build(),
        pod_group("late").members(1).phase("Pending").build(),
        pod("early").group("late").build(),
    )
    assert binds(run_cycle(mirror, policy("gang", actions="backfill"))) == {}


def test_tasks_of_a_job_that_does_not_become_ready_are_forgotten() -> None:
    never = plugin_of(Hooks(job_ready=lambda _: False), "never")
    mirror = two_nodes()
    result = run_cycle(mirror, policy("never"), plugins={"never": never})
    assert result.binds == []
    assert mirror.tasks["ns/p"].status == TaskStatus.PENDING
    audit(mirror)
