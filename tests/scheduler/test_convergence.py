"""Under every policy that evicts, evictions come to an end, though evicted pods come back as new ones.

Random small clusters are run for many cycles. From some cycle on nobody is evicted any more, and no two pods
take turns: whoever was evicted for another pod is not evicted for it again and again.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from stromboli.scheduler.core.policy import PluginOption, Policy, Tier
from stromboli.testing.builders import (
    PodBuilder,
    PodGroupBuilder,
    QueueBuilder,
    node,
    pod,
    pod_group,
    priority_class,
    queue,
)
from tests.scheduler.core.worlds import world
from tests.scheduler.owners import Owners
from tests.scheduler.plugins.sessions import option

PRIORITIES = {"low": 1, "middle": 50, "high": 100}
CYCLES = 20
"""By then everything has found its place."""
TURNS = 2
"""How often a slot may be evicted for the same other slot: once more when the first place was lost to a third."""

quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def tiers(queues: str | PluginOption) -> tuple[Tier, ...]:
    """The plugins of the usual policy file in one tier, so that each has a say in who may be evicted."""
    gang, drf = option("gang", preemptable=False), option("drf", preemptable=False)
    named = ("priority", gang, "conformance", "overcommit", drf, "predicates", queues, "nodeorder")
    return (tuple(PluginOption(one) if isinstance(one, str) else one for one in named),)


def acting(actions: str, queues: str | PluginOption) -> Policy:
    return Policy(tuple(actions.split()), tiers(queues))


TREE = option("capacity", hierarchy=True)
POLICIES = {
    "reclaim in a tree of queues": acting("enqueue allocate backfill reclaim", TREE),
    "reclaim in a tree, three levels up": acting(
        "enqueue allocate backfill reclaim", option("capacity", {"ancestorReclaimLevel": 2}, hierarchy=True)
    ),
    "gangs reclaim and preempt": acting("enqueue allocate gangpreempt gangreclaim backfill", "capacity"),
    "gangs reclaim and preempt by weight": acting("enqueue allocate gangpreempt gangreclaim backfill", "proportion"),
    "preempt by priority": acting("enqueue allocate preempt backfill", "proportion"),
    "reclaim by weight": acting("enqueue allocate reclaim backfill", "proportion"),
    "preempt and reclaim in a tree": acting("enqueue allocate preempt reclaim backfill", TREE),
    "preempt and reclaim by weight": acting("enqueue allocate preempt reclaim backfill", "proportion"),
}


@st.composite
def queues(draw: st.DrawFn) -> list[QueueBuilder]:
    """Two departments with up to three queues below them; those that share by weight see five flat queues."""
    found = [queue(dept).deserve(cpu=draw(st.integers(0, 8)), memory="16Gi") for dept in ("x", "y")]
    for name in ("x1", "x2", "y1"):
        leaf = queue(name).parent(name[0]).weight(draw(st.integers(1, 3)))
        found.append(leaf.deserve(cpu=draw(st.integers(0, 5)), memory="8Gi"))
    return found


@st.composite
def jobs(draw: st.DrawFn, name: str) -> tuple[PodGroupBuilder, list[PodBuilder]]:
    """A job of up to three pods; its pods may differ in priority."""
    size = draw(st.integers(1, 3))
    least = draw(st.integers(1, size))
    group = pod_group(name).members(least).queue(draw(st.sampled_from(["x1", "x2", "y1"]))).phase("Inqueue")
    group = group.priority_class(draw(st.sampled_from(list(PRIORITIES)))).born(draw(st.integers(0, 3)))
    cpu = draw(st.integers(1, 3))
    own = draw(st.booleans())
    pods = [
        pod(f"{name}-{at}")
        .group(name)
        .request(cpu=cpu, memory="1Gi")
        .priority(draw(st.sampled_from(list(PRIORITIES.values()))) if own else 0)
        .annotate(**{"volcano.sh/preemptable": draw(st.sampled_from(["true", "true", "true", "false"]))})
        for at in range(size)
    ]
    return group.reserve(cpu=cpu * least, memory=f"{least}Gi"), pods


@st.composite
def owners(draw: st.DrawFn, policy: Policy) -> Owners:
    """A cluster of up to three nodes that is asked for more than it has."""
    sizes = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    nodes = [node(f"n{at}").offer(cpu=size, memory="16Gi").build() for at, size in enumerate(sizes)]
    wanted = [draw(jobs(f"j{at}")) for at in range(draw(st.integers(4, 7)))]
    mirror = world(
        nodes,
        [queue("root").build(), *(one.build() for one in draw(queues()))],
        [priority_class(name, value) for name, value in PRIORITIES.items()],
        [group.build() for group, _ in wanted],
    )
    pods = [one for _, members in wanted for one in members]
    free = dict(zip([one.name for one in nodes], sizes, strict=True))
    pods = [_started(draw, one, free) for one in pods]
    return Owners.of(mirror, pods, policy, grace=draw(st.integers(0, 1)))


def _started(draw: st.DrawFn, one: PodBuilder, free: dict[str, int]) -> PodBuilder:
    """Perhaps already running where there is room."""
    cpu = int(one.requests["cpu"])
    room = [name for name, left in free.items() if left >= cpu]
    if not room or draw(st.integers(0, 3)) == 0:
        return one
    where = draw(st.sampled_from(room))
    free[where] -= cpu
    return one.on(where)


@pytest.mark.parametrize("name", POLICIES)
@quick
@given(data=st.data())
def test_evictions_come_to_an_end_when(name: str, data: st.DataObject) -> None:
    cluster = data.draw(owners(POLICIES[name]))
    at_rest = cluster.comes_to_rest(within=CYCLES)
    event("evicts" if cluster.pairs else "evicts nobody")
    assert at_rest, cluster.evictions
    assert max(cluster.pairs.values(), default=0) <= TURNS, cluster.pairs


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_a_queue_with_all_it_deserves_does_not_change_places_with_one_that_has_as_much_more(action: str) -> None:
    """Each queue deserves one cpu of three; memory, of which there is plenty, makes both queues fit to take more."""
    mirror = world(
        node("n").offer(cpu=3, memory="64Gi").build(),
        [queue(name).deserve(cpu=1, memory="8Gi").build() for name in ("one", "two")],
        [
            pod_group(f"{name}{at}").members(1).queue(name).phase("Inqueue").build()
            for name in ("one", "two")
            for at in "ab"
        ],
    )
    held = [pod(name).group(name).request(cpu=1, memory="1Gi").on("n") for name in ("onea", "oneb", "twoa")]
    waiting = pod("twob").group("twob").request(cpu=1, memory="1Gi")
    cluster = Owners.of(mirror, [*held, waiting], acting(f"enqueue allocate {action}", "capacity"))
    assert cluster.comes_to_rest(within=CYCLES), cluster.evictions
    assert not cluster.pairs
