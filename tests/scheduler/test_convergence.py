"""Under every policy that evicts, evictions come to an end, though evicted pods come back as new ones.

Random small clusters are run for many cycles. From some cycle on nobody is evicted any more, and no two pods
take turns: whoever was evicted for another pod is not evicted for it again and again.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, event, given, settings

from stromboli.scheduler.core.policy import PluginOption, Policy, Tier
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import world
from tests.scheduler.crowds import Crowd, crowds
from tests.scheduler.owners import Owners
from tests.scheduler.plugins.sessions import option

CYCLES = 20
"""By then everything has found its place."""
TURNS = 2
"""How often a slot may be evicted for the same other slot: once more when the first place was lost to a third."""

quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def plugins(queues: str | PluginOption) -> tuple[Tier, Tier]:
    """The plugins of the usual policy file, in their usual tiers."""
    gang, drf = option("gang", preemptable=False), option("drf", preemptable=False)
    first = ("priority", gang, "conformance")
    second = ("overcommit", drf, "predicates", queues, "nodeorder")
    return _tier(*first), _tier(*second)


def _tier(*members: str | PluginOption) -> Tier:
    return tuple(PluginOption(one) if isinstance(one, str) else one for one in members)


def acting(actions: str, queues: str | PluginOption, layout: str = "one tier") -> Policy:
    first, second = plugins(queues)
    return Policy(
        tuple(actions.split()),
        (first + second,) if layout == "one tier" else (first, second),
        tiers_agree_on_victims=layout == "two tiers that agree",
    )


LAYOUTS = ("one tier", "two tiers", "two tiers that agree")
TREE = option("capacity", hierarchy=True)
POLICIES: dict[str, tuple[str, str | PluginOption]] = {
    "reclaim in a tree of queues": ("enqueue allocate backfill reclaim", TREE),
    "reclaim in a tree, three levels up": (
        "enqueue allocate backfill reclaim",
        option("capacity", {"ancestorReclaimLevel": 2}, hierarchy=True),
    ),
    "gangs reclaim and preempt": ("enqueue allocate gangpreempt gangreclaim backfill", "capacity"),
    "gangs reclaim and preempt in a tree": ("enqueue allocate gangpreempt gangreclaim backfill", TREE),
    "gangs reclaim and preempt by weight": ("enqueue allocate gangpreempt gangreclaim backfill", "proportion"),
    "preempt by priority": ("enqueue allocate preempt backfill", "proportion"),
    "reclaim by weight": ("enqueue allocate reclaim backfill", "proportion"),
    "preempt and reclaim in a tree": ("enqueue allocate preempt reclaim backfill", TREE),
    "preempt and reclaim by weight": ("enqueue allocate preempt reclaim backfill", "proportion"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", POLICIES)
@quick
@given(crowd=crowds())
def test_evictions_come_to_an_end_when(name: str, layout: str, crowd: Crowd) -> None:
    cluster = crowd.under(acting(*POLICIES[name], layout))
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


@pytest.mark.parametrize(("layout", "want"), [("one tier", 0), ("two tiers", 1), ("two tiers that agree", 0)])
def test_two_gangs_that_may_both_take_exchange_their_place_once_at_the_most(layout: str, want: int) -> None:
    """Both have more than their queues deserve of cpu, and less of memory, so that both queues are fit to take."""
    mirror = world(
        node("n").offer(cpu=2, memory="64Gi").build(),
        [queue(name).deserve(cpu=1, memory="8Gi").build() for name in ("one", "two")],
        [pod_group(name).members(1).queue(name).phase("Inqueue").build() for name in ("one", "two")],
    )
    pods = [pod(name).group(name).request(cpu=2, memory="1Gi") for name in ("one", "two")]
    cluster = Owners.of(mirror, [pods[0].on("n"), pods[1]], acting("enqueue allocate gangreclaim", "capacity", layout))
    assert cluster.comes_to_rest(within=CYCLES), cluster.evictions
    assert sum(cluster.evictions) == want
