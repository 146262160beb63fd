"""A gang whose binds are refused is passed over, and its PodGroup and its pods say so."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from stromboli.scheduler import holding
from stromboli.scheduler.actions import ACTIONS
from stromboli.scheduler.backing_off import Hold
from stromboli.scheduler.core.cycle import run
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.plugins import built_in
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import NOW, policy, world

HOLD = Hold(NOW + 8, "p-0 on node n: denied by policy (403)")
SAID = (
    "nodes were found, but binds of its pods are refused: p-0 on node n: denied by policy (403); "
    "they are tried again at {}; see who refuses the binds: a webhook, a quota or a node"
)


def cluster(*, minimum: int = 2) -> Mirror:
    return world(
        node("n").offer(cpu=4).build(),
        queue().build(),
        pod_group("g").members(minimum).phase("Inqueue").build(),
        pod("p-0").group("g").request(cpu=1).build(),
        pod("p-1").group("g").request(cpu=1).build(),
    )


def cycle(mirror: Mirror, hold: Hold | None, now: float = NOW) -> CycleResult:
    rules = policy("gang", "predicates", actions="enqueue allocate")
    return run(
        mirror,
        holding.with_backoff(rules) if hold else rules,
        now,
        session_id="s",
        plugins={**built_in().factories, holding.NAME: holding.BindBackoff},
        actions=ACTIONS,
        options={holding.OPTION: {"ns/g": hold} if hold else {}},
    )


def fits(result: CycleResult) -> tuple[str, str, str]:
    (update,) = result.pod_groups
    return next((one.status, one.reason, one.message) for one in update.status.conditions if one.type == "Fits")


def test_a_held_gang_says_who_refuses_its_binds_and_when_they_are_tried_again() -> None:
    result = cycle(cluster(), HOLD)
    message = SAID.format(at(HOLD))
    assert not result.binds
    assert fits(result) == ("False", "BindingRefused", message)
    assert {(one.task.name, one.reason, one.message) for one in result.pods} == {
        ("p-0", "SchedulerError", message),
        ("p-1", "SchedulerError", message),
    }


@pytest.mark.parametrize("minimum", [1, 2])
def test_it_is_said_once_a_hold_and_ends_with_it(minimum: int) -> None:
    mirror = cluster(minimum=minimum)
    cycle(mirror, HOLD)
    for second in (1, 2, 7):
        again = cycle(mirror, HOLD, NOW + second)
        assert (again.pod_groups, again.pods) == ([], [])
    placed = cycle(mirror, None, NOW + 8)
    assert len(placed.binds) == 2
    assert fits(placed)[0] == "True"


def test_a_gang_that_runs_says_of_the_rest_of_its_pods_that_they_are_refused() -> None:
    mirror = cluster(minimum=1)
    mirror.apply_pod(pod("p-2").group("g").request(cpu=1).on("n").phase("Running").build())
    assert fits(cycle(mirror, HOLD))[0] == "False"
    for second in (1, 2):
        assert cycle(mirror, HOLD, NOW + second).pod_groups == []


def at(hold: Hold) -> str:
    return f"{datetime.fromtimestamp(hold.until, UTC):%H:%M:%S} UTC"
