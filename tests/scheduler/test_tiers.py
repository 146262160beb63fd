"""With tiers that agree on victims, where a plugin stands does not decide who is evicted (pain P53)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, event, given, settings

from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import PluginOption, Policy, Tier
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.scheduler.core.worlds import evicted, run_cycle, world
from tests.scheduler.crowds import Crowd, crowds
from tests.scheduler.plugins.sessions import option

GUARDS: Tier = tuple(PluginOption(name) for name in ("priority", "gang", "conformance"))
QUOTAS: dict[str, PluginOption] = {
    "capacity": PluginOption("capacity"),
    "a tree of capacity": option("capacity", hierarchy=True),
    "proportion": PluginOption("proportion"),
}
ACTIONS = ("preempt", "reclaim", "gangpreempt", "gangreclaim")


def policies(action: str, quotas: PluginOption, *, agree: bool) -> list[Policy]:
    """The same plugins with the tiers in either order."""
    tiers = (GUARDS, (PluginOption("predicates"), quotas, PluginOption("nodeorder")))
    return [
        Policy(("enqueue", "allocate", action), order, tiers_agree_on_victims=agree) for order in (tiers, tiers[::-1])
    ]


def full(claim: int) -> Mirror:
    """``claimant`` has nothing; ``lender`` has more than it deserves, half of it critical; ``thrifty`` has what it
    deserves. Each has one pod a job."""
    pods = [
        replace(pod("lent-critical").request(cpu=3).on("n"), namespace="kube-system"),
        pod("lent").request(cpu=3).on("n"),
        pod("due").request(cpu=3).on("n"),
        pod("wanted").request(cpu=claim),
    ]
    queues = ("lender", "lender", "thrifty", "claimant")
    groups = [
        replace(pod_group(one.name).members(0 if one.spec.node_name else 1).queue(name), namespace=one.namespace)
        for one, name in zip(pods, queues, strict=True)
    ]
    return world(
        node("n").offer(cpu=9, memory="64Gi").build(),
        [queue(name).deserve(cpu=amount).build() for name, amount in (("lender", 1), ("thrifty", 3), ("claimant", 6))],
        [group.phase("Inqueue").build() for group in groups],
        [one.group(one.name).build() for one in pods],
    )


def victims(claim: int, policy: Policy) -> list[str]:
    return evicted(run_cycle(full(claim), policy))


@pytest.mark.parametrize(("claim", "want"), [(3, ["lent"]), (6, [])])
@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_who_is_critical_or_within_the_quota_is_spared_in_both_orders_of_tiers(
    action: str, claim: int, want: list[str]
) -> None:
    assert [victims(claim, one) for one in policies(action, QUOTAS["capacity"], agree=True)] == [want] * 2


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_unless_tiers_agree_the_first_decides_alone(action: str) -> None:
    """In one order a queue loses what it deserves, in the other a critical pod goes."""
    by_order = [victims(6, one) for one in policies(action, QUOTAS["capacity"], agree=False)]
    assert by_order == [["due", "lent"], ["lent", "lent-critical"]]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("quotas", QUOTAS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(crowd=crowds())
def test_both_orders_of_tiers_give_the_same_victims(action: str, quotas: str, crowd: Crowd) -> None:
    one, other = (evicted(run_cycle(crowd.mirror(), each)) for each in policies(action, QUOTAS[quotas], agree=True))
    event("evicts" if one else "evicts nobody")
    assert one == other
