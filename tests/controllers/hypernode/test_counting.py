"""How many nodes a HyperNode has: spec 03 section 8.1."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.core import HyperNode, Node, from_builtins
from stromboli.controllers.hypernode.counting import concerns, count


def node(name: str, **labels: str) -> Node:
    return from_builtins(Node, {"metadata": {"name": name, "labels": labels}})


def hyper_node(*selectors: dict[str, Any] | None, type: str = "Node") -> HyperNode:
    members = [{"type": type, **({} if one is None else {"selector": one})} for one in selectors]
    return from_builtins(HyperNode, {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": members}})


def exact(name: str) -> dict[str, Any]:
    return {"exactMatch": {"name": name}}


def regex(pattern: str) -> dict[str, Any]:
    return {"regexMatch": {"pattern": pattern}}


def labels(**wanted: str) -> dict[str, Any]:
    return {"labelMatch": {"matchLabels": wanted}}


NODES = [node("node1", zone="east"), node("node2"), node("node3"), node("node4", zone="west")]

CASES = {
    "exact names need not exist": (hyper_node(exact("a"), exact("b"), exact("c")), 3),
    "all three ways": (hyper_node(exact("master"), labels(zone="east"), regex("node[1-3]")), 4),
    "no selector, and a pattern of HyperNodes": (
        hyper_node(exact("master"), None, regex("node[2-4]"), type="HyperNode"),
        4,
    ),
    "not anchored": (hyper_node(regex("ode")), 4),
    "anchored": (hyper_node(regex("^node1$")), 1),
    "a pattern that is none": (hyper_node(regex("node[")), 0),
    "a pattern that RE2 does not know": (hyper_node(regex("(?=node)")), 0),
    "an empty label selector": (hyper_node({"labelMatch": {}}), 0),
    "an expression": (
        hyper_node({"labelMatch": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}),
        2,
    ),
    "a bad expression": (
        hyper_node({"labelMatch": {"matchExpressions": [{"key": "zone", "operator": "Resembles"}]}}),
        0,
    ),
    "an empty name": (hyper_node(exact("")), 0),
    "the same name twice": (hyper_node(exact("node1"), regex("node1")), 1),
    "no members": (hyper_node(), 0),
}


@pytest.mark.parametrize(("given", "want"), CASES.values(), ids=CASES.keys())
def test_node_count(given: HyperNode, want: int) -> None:
    assert count(given, NODES) == want


def test_which_nodes_matter() -> None:
    assert concerns(hyper_node(regex("node1")), node("node1"))
    assert concerns(hyper_node(labels(zone="east")), node("x"), node("x", zone="east"))
    assert not concerns(hyper_node(exact("node1")), node("node1")), "an exact name counts anyway"
    assert not concerns(hyper_node(regex("node1")), node("other"))


def test_a_hostile_pattern_takes_no_time() -> None:
    assert count(hyper_node(regex("(a+)+$")), [node("a" * 60 + "!")]) == 0
