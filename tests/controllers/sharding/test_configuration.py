"""Flags and the ConfigMap of sharding: spec 03 section 10.1."""

from __future__ import annotations

from fractions import Fraction

import pytest

from stromboli.controllers.sharding.configuration import BadConfiguration, Configuration, parse, parse_flags
from stromboli.controllers.sharding.policies import AllocationRate, NodeLimit, Policy, Warmup

KEY = "sharding.yaml"


def read(text: str) -> Configuration:
    return parse({KEY: text})


def chain(text: str) -> list[Policy]:
    [shard] = read(f"schedulerConfigs: [{{name: s, {text}}}]").shards
    return [policy for policy, _ in shard.policies]


def rate(low: str, high: str) -> AllocationRate:
    return AllocationRate(Fraction(low), Fraction(high))


def test_flags() -> None:
    defaults = ["volcano:volcano:0.0:0.6:false:2:100", "agent-scheduler:agent:0.7:1.0:true:2:100"]
    volcano, agent = parse_flags(defaults)
    assert (volcano.name, [policy for policy, _ in volcano.policies]) == (
        "volcano", [rate("0", "0.6"), NodeLimit(2, 100)]
    )  # fmt: skip
    assert (agent.name, [policy for policy, _ in agent.policies]) == (
        "agent-scheduler", [rate("0.7", "1"), NodeLimit(2, 100)]
    )  # fmt: skip


def test_infinite_rates_in_flags() -> None:
    [shard] = parse_flags(["s:x:-inf:Infinity:false:0:0"])
    assert [policy for policy, _ in shard.policies] == [rate("0", "1")]


@pytest.mark.parametrize("item", ["s:x:0:1:false:2", "s:x:0:1:false:2:100:more", ""])
def test_a_flag_of_another_number_of_parts(item: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        parse_flags([item])
    assert str(caught.value) == f"invalid scheduler config format: {item}, expected 7 colon-separated parts"


@pytest.mark.parametrize(
    "item", ["s:x:zero:1:false:2:100", "s:x:0:1:false:few:100", "s:x:0:7:false:2:100", ":x:0:1:false:2:100"]
)
def test_a_flag_that_makes_no_sense(item: str) -> None:
    with pytest.raises(BadConfiguration):
        parse_flags([item])


CHAINS: dict[str, tuple[str, list[Policy]]] = {
    "nothing said": ("type: x", [rate("0", "1")]),
    "older bounds": ("cpuUtilizationMin: 0.2, cpuUtilizationMax: 0.5", [rate("0.2", "0.5")]),
    "arguments win over older bounds": (
        "arguments: {minCPUUtil: 0.1, maxCPUUtil: 0.4}, cpuUtilizationMax: 0.9", [rate("0.1", "0.4")]
    ),
    "warm nodes preferred": (
        "preferWarmupNodes: true", [rate("0", "1"), Warmup("node.volcano.sh/warmup", "true")]
    ),
    "limits": ("minNodes: 1, maxNodes: 2", [rate("0", "1"), NodeLimit(1, 2)]),
    "limits beside policies": (
        "policies: [{name: warmup}], maxNodes: 2", [Warmup("node.volcano.sh/warmup", "true"), NodeLimit(0, 2)]
    ),
    "a limit that is there already": (
        "policies: [{name: node-limit, arguments: {maxNodes: 5}}], maxNodes: 2", [NodeLimit(0, 5)]
    ),
    "arguments of another type are ignored": (
        "policies: [{name: allocation-rate, arguments: {minCPUUtil: low, maxCPUUtil: true}}]", [rate("0", "1")]
    ),
    "another label": (
        "policies: [{name: warmup, arguments: {warmupLabel: hot, warmupLabelValue: very}}]", [Warmup("hot", "very")]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "want"), CHAINS.values(), ids=CHAINS.keys())
def test_policies(text: str, want: list[Policy]) -> None:
    assert chain(text) == want


def test_weights() -> None:
    [shard] = read("schedulerConfigs: [{name: s, policies: [{name: warmup, weight: 2.5}, {name: warmup}]}]").shards
    assert [weight for _, weight in shard.policies] == [Fraction("2.5"), Fraction(1)]


BAD = {
    "no key": ({}, "has no key sharding.yaml"),
    "empty": ({KEY: ""}, "sharding config must contain at least one schedulerConfig entry"),
    "no yaml": ({KEY: "a: ["}, "sharding.yaml"),
    "wrong types": ({KEY: "schedulerConfigs: [{name: 5}]"}, r"schedulerConfigs\[0\].name: must be a string"),
    "no name": ({KEY: "schedulerConfigs: [{type: x}]"}, "name must not be empty"),
    "twice": ({KEY: "schedulerConfigs: [{name: s}, {name: s}]"}, "scheduler s: it is configured twice"),
}
BAD_SCHEDULERS = {
    "cpuUtilizationMin: 1.1": "cpuUtilizationMin must be from 0 to 1, not 1.1",
    "cpuUtilizationMax: -0.1": "cpuUtilizationMax must be from 0 to 1",
    "cpuUtilizationMin: 0.6, cpuUtilizationMax: 0.5": "cpuUtilizationMin 0.6 is above cpuUtilizationMax 0.5",
    "minNodes: -1": "minNodes must not be negative",
    "minNodes: 3, maxNodes: 2": "maxNodes 2 is less than minNodes 3",
    "policies: [{weight: 1}]": "policy name must not be empty",
    "policies: [{name: warmup, weight: -1}]": "weight must not be negative",
    "policies: [{name: warmup, arguments: {maxNodes: 1}}]": "minNodes and maxNodes belong to the policy node-limit",
    "policies: [{name: warmup, arguments: {warmupLabel: ''}}]": "warmupLabel must not be empty",
    "policies: [{name: allocation-rate, arguments: {minCPUUtil: 0.9, maxCPUUtil: 0.1}}]": "must be in order",
    "policies: [{name: node-limit, arguments: {minNodes: 9, maxNodes: 1}}]": "maxNodes 1 not less",
}


@pytest.mark.parametrize(("data", "text"), BAD.values(), ids=BAD.keys())
def test_a_file_that_is_refused(data: dict[str, str], text: str) -> None:
    with pytest.raises(BadConfiguration, match=text) as caught:
        parse(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("scheduler", "text"), BAD_SCHEDULERS.items())
def test_a_scheduler_that_is_refused(scheduler: str, text: str) -> None:
    with pytest.raises(BadConfiguration, match=text):
        chain(scheduler)


def test_an_unknown_policy_is_refused() -> None:
    """Defect 22 of spec 03 section 13: such a scheduler got every node."""
    with pytest.raises(BadConfiguration, match="policy best-nodes is unknown; there are allocation-rate, node-limit"):
        chain("policies: [{name: best-nodes}]")


def test_period_and_events() -> None:
    base = "schedulerConfigs: [{name: s}]\n"
    assert read(base) == Configuration(read(base).shards, None, None)
    found = read(base + "shardSyncPeriod: 1m30s\nenableNodeEventTrigger: false")
    assert (found.sync_period, found.node_events) == (90.0, False)
    for odd in ("soon", "0s", "-1s"):
        assert read(f"{base}shardSyncPeriod: {odd}").sync_period is None
