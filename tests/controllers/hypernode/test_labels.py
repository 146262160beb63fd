"""HyperNodes from node labels: spec 03 section 8.5."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.api.core import Node, from_builtins
from stromboli.controllers.hypernode.labelled import random_suffix
from stromboli.controllers.hypernode.labels import (
    SUFFIX_ALPHABET,
    Existing,
    TopologyType,
    discover,
    parse_types,
    watched_labels,
)
from stromboli.controllers.hypernode.topologies import Discovered, SourceError

HOST = "kubernetes.io/hostname"
TYPES = (TopologyType("topo", ("tor", "cluster")),)


def node(name: str, **labels: str) -> Node:
    return from_builtins(Node, {"metadata": {"name": name, "labels": labels}})


def counting() -> Callable[[], str]:
    numbers = itertools.count()
    return lambda: f"x{next(numbers)}"


def found(nodes: list[Node], *existing: Existing, types: tuple[TopologyType, ...] = TYPES) -> list[Discovered]:
    return discover(types, nodes, existing, counting())


def test_types_from_the_configuration() -> None:
    config = {"networkTopologyTypes": {"topo": [{"nodeLabel": "cluster"}, {"nodeLabel": "tor"}, {"nodeLabel": HOST}]}}
    assert parse_types(config) == TYPES
    assert watched_labels(TYPES) == {"tor", "cluster"}


def test_types_that_cannot_be_used_are_left_out() -> None:
    twice = [{"nodeLabel": "a"}, {"nodeLabel": "a"}, {"nodeLabel": HOST}]
    good = [{"nodeLabel": "a"}, {"nodeLabel": HOST}]
    config = {"networkTopologyTypes": {"x" * 21: good, "twice": twice, "good": good}}
    assert [one.name for one in parse_types(config)] == ["good"]
    assert parse_types({}) == ()


@pytest.mark.parametrize("given", ["text", {"t": "text"}, {"t": [{"label": "x"}]}, {"t": ["x"]}])
def test_types_of_another_shape(given: object) -> None:
    with pytest.raises(SourceError, match="networkTopologyTypes"):
        parse_types({"networkTopologyTypes": given})


def test_two_tiers() -> None:
    nodes = [node(f"n{n}", tor=f"s{n // 2}", cluster=f"s{4 + n // 4}") for n in range(8)]
    seen = found(nodes)
    assert [(one.tier, one.tier_name, len(one.members)) for one in seen] == [(1, "tor", 2)] * 4 + [
        (2, "cluster", 2)
    ] * 2
    assert seen[0].spec() == {
        "tier": 1,
        "tierName": "tor",
        "members": [
            {"type": "Node", "selector": {"exactMatch": {"name": "n0"}}},
            {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}},
        ],
    }
    assert seen[0].labels == {"tor": "s0"}
    assert seen[4].spec()["members"][0]["type"] == "HyperNode"
    assert set(seen[4].members) == {seen[0].name, seen[1].name}


def test_a_node_without_the_inner_label_contributes_nothing() -> None:
    nodes = [node("n0", tor="s0"), node("n1", tor="s0", cluster="s2"), node("n2", tor="s1"), node("n3", tor="s1")]
    assert len(found([*nodes, node("n4", cluster="s9")])) == 3
    assert len(found([node("n0", tor="s0"), node("n1", cluster="s2")])) == 1


def own(name: str, **labels: str) -> Existing:
    return Existing(name, {names.NETWORK_TOPOLOGY_SOURCE: "label", **labels})


def test_a_name_is_kept() -> None:
    [one] = found(
        [node("n", tor="s0")], own("hypernode-topo-tier1-zzzzz", tor="s0"), own("hypernode-topo-tier1-aaaaa", tor="s0")
    )
    assert one.name == "hypernode-topo-tier1-aaaaa"


@pytest.mark.parametrize(
    "existing",
    [
        own("hypernode-other-tier1-aaaaa", tor="s0"),
        own("hypernode-topo-tier1-aaaaa", tor="s1"),
        Existing("hypernode-topo-tier1-aaaaa", {"tor": "s0"}),
    ],
    ids=["another type", "another value", "not ours"],
)
def test_a_name_that_is_not_for_this_is_not_taken(existing: Existing) -> None:
    [one] = found([node("n", tor="s0")], existing)
    assert one.name == "hypernode-topo-tier1-x0"


def test_a_name_that_somebody_has_is_not_given() -> None:
    [one] = found([node("n", tor="s0")], Existing("hypernode-topo-tier1-x0"))
    assert one.name == "hypernode-topo-tier1-x1"
    with pytest.raises(SourceError, match="after 20 attempts"):
        discover(TYPES, [node("n", tor="s0")], [Existing("hypernode-topo-tier1-x")], lambda: "x")


def test_types_become_parts_of_names() -> None:
    assert TopologyType("My Topo_1.x", ()).prefix(2) == "hypernode-my-topo-1.x-tier2"


def test_suffixes() -> None:
    seen = {random_suffix() for _ in range(50)}
    assert len(seen) > 45
    assert all(len(one) == 5 and set(one) <= set(SUFFIX_ALPHABET) for one in seen)


NODES = st.lists(st.tuples(st.sampled_from(["", "a", "b", "c"]), st.sampled_from(["", "x", "y"])), max_size=12).map(
    lambda given: [
        node(f"n{number}", **{key: value for key, value in (("tor", tor), ("cluster", cluster)) if value})
        for number, (tor, cluster) in enumerate(given)
    ]
)


@given(NODES, st.randoms())
def test_the_order_of_nodes_does_not_matter_and_names_settle(nodes: list[Node], random: object) -> None:
    first = found(nodes)
    existing = [own(one.name, **dict(one.labels)) for one in first]
    shuffled = list(nodes)
    getattr(random, "shuffle")(shuffled)  # noqa: B009 - hypothesis types it as object
    assert found(shuffled, *existing) == first


@given(NODES)
def test_every_member_exists(nodes: list[Node]) -> None:
    seen = found(nodes)
    known = {one.name for one in nodes} | {one.name for one in seen}
    assert all(one.members and set(one.members) <= known for one in seen)
    assert len({one.name for one in seen}) == len(seen)
