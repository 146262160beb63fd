"""A gang whose binds are refused is passed over, and its PodGroup says so."""

from __future__ import annotations

from stromboli.scheduler import holding
from stromboli.scheduler.core.cycle import run
from stromboli.scheduler.plugins import built_in
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import NOW, policy, world


def test_a_held_gang_says_that_its_binds_are_refused() -> None:
    mirror = world(
        node("n").offer(cpu=4).build(),
        queue().build(),
        pod_group("g").members(1).phase("Inqueue").build(),
        pod("p").group("g").request(cpu=1).build(),
    )
    result = run(
        mirror,
        holding.with_backoff(policy("gang")),
        NOW,
        session_id="s",
        plugins={**built_in().factories, holding.NAME: holding.BindBackoff},
        actions={},
        options={holding.OPTION: {"ns/g": NOW + 8}},
    )
    (update,) = result.pod_groups
    told = {item.type: (item.status, item.reason, item.message) for item in update.status.conditions}
    assert told["Fits"] == ("False", "BindingRefused", holding.TOLD)
