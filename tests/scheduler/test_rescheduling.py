"""Pods are not moved back and forth for ever, though they may come back to the node that they were moved off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import log2

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from stromboli.scheduler.core import loads
from stromboli.scheduler.core.policy import PluginOption, Policy
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import NOW, world
from tests.scheduler.owners import Owners
from tests.scheduler.plugins.sessions import option

CYCLES = 60
INTERVAL = 1
SIZE = 4
"""CPUs of each node."""

THRESHOLDS = {"thresholds": {"cpu": 40, "memory": 40}, "targetThresholds": {"cpu": 60, "memory": 60}}
RESCHEDULING = option(
    "rescheduling",
    {"interval": f"{INTERVAL}s", "strategies": [{"name": "lowNodeUtilization", "params": THRESHOLDS}]},
)
TIER = (*map(PluginOption, ("priority", "gang", "conformance", "predicates", "nodeorder")), RESCHEDULING)
POLICY = Policy(("enqueue", "allocate", "backfill", "shuffle"), (TIER,))


def measured(owners: Owners) -> Mapping[str, object]:
    """Pods use what they ask for."""
    used: Counter[str] = Counter()
    for one in owners.pods.values():
        used[one.spec.node_name] += int(one.requests["cpu"])
    now = NOW + owners.cycles * owners.step
    return {
        loads.OPTION: {
            name: loads.NodeLoad(now, {loads.PERIOD: 100.0 * used[name] / SIZE}, {loads.PERIOD: 0.0})
            for name in owners.mirror.nodes_by_name
        }
    }


@st.composite
def clusters(draw: st.DrawFn) -> Owners:
    """Up to three nodes, the first of which is the busiest; some pods can only be there."""
    nodes = [node(f"n{at}").offer(cpu=SIZE, memory="16Gi").label(at=str(at)) for at in range(draw(st.integers(2, 3)))]
    free = {one.name: SIZE for one in nodes}
    pods, groups = [], []
    for at in range(draw(st.integers(2, 7))):
        cpu = draw(st.integers(1, 3))
        one = pod(f"p{at}").group(f"p{at}").request(cpu=cpu, memory="1Gi")
        if draw(st.booleans()):
            one = one.select(at="0")
        where = next((name for name, left in free.items() if left >= cpu), None)
        if where is not None and (where == "n0" or "at" not in one.spec.node_selector):
            free[where] -= cpu
            one = one.on(where)
        pods.append(one)
        groups.append(pod_group(one.name).members(1).phase("Inqueue").build())
    mirror = world([one.build() for one in nodes], queue("default").build(), groups)
    return Owners.of(mirror, pods, POLICY, grace=draw(st.integers(0, 1)), options=measured)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_a_pod_is_moved_off_the_same_node_less_and_less_often(cluster: Owners) -> None:
    moves: Counter[tuple[str, str]] = Counter()
    for _ in range(CYCLES):
        before = cluster.placed()
        cluster.cycle()
        after = cluster.placed()
        moves.update((slot, where) for slot, where in before.items() if slot not in after)
    event(f"moves {max(moves.values(), default=0)} times")
    assert max(moves.values(), default=0) <= log2(CYCLES / INTERVAL) + 1, cluster.evictions
