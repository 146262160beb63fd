"""The map: whose node is where, how full, with what; and HyperNodes that make no tree."""

from __future__ import annotations

import pytest

from stromboli.api import core
from stromboli.dashboard.objects import PodSight
from stromboli.dashboard.sights import Sight
from stromboli.dashboard.topology import TopologyMap, mapped
from stromboli.testing.builders import hyper_node, node


def pod(name: str, on: str, owner: str = "", phase: str = "Running", **requests: float) -> PodSight:
    return PodSight("ns", name, name, "1", phase, on, owner, 0.0, requests)


def shape(found: TopologyMap) -> list[tuple[str, int, list[str]]]:
    return [(one.name, one.depth, [found.nodes[place].name for place in one.nodes]) for one in found.domains]


NODES = [node(name).offer(cpu=4, memory=8).build() for name in ("n0", "n1", "n2", "n3")]

SHAPES: dict[str, tuple[list[core.HyperNode], list[tuple[str, int, list[str]]], list[str]]] = {
    "flat": ([], [], ["n0", "n1", "n2", "n3"]),
    "two tiers": (
        [hyper_node("top", 2, children=("a", "b")), hyper_node("a", 1, ("n0", "n1")), hyper_node("b", 1, ("n2",))],
        [("top", 0, []), ("a", 1, ["n0", "n1"]), ("b", 1, ["n2"])],
        ["n3"],
    ),
    "a node is shown in its narrowest domain": (
        [hyper_node("wide", 2, ("n0", "n1", "n2", "n3")), hyper_node("narrow", 1, ("n1",))],
        [("narrow", 0, ["n1"]), ("wide", 0, ["n0", "n2", "n3"])],
        [],
    ),
    "two parents": (
        [hyper_node("x", 2, children=("a",)), hyper_node("y", 2, children=("a",)), hyper_node("a", 1, ("n0",))],
        [("x", 0, []), ("a", 1, ["n0"]), ("y", 0, [])],
        ["n1", "n2", "n3"],
    ),
    "a circle": (
        [hyper_node("a", 1, ("n0",), children=("b",)), hyper_node("b", 2, ("n1",), children=("a",))],
        [("a", 0, ["n0", "n1"]), ("b", 0, [])],
        ["n2", "n3"],
    ),
    "members that are not there": (
        [hyper_node("a", 1, ("n0", "ghost"), children=("nobody",))],
        [("a", 0, ["n0"])],
        ["n1", "n2", "n3"],
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str) -> None:
    hyper_nodes, want, outside = SHAPES[name]
    found = mapped(Sight(nodes=NODES, hyper_nodes=hyper_nodes))
    assert shape(found) == want
    assert [found.nodes[place].name for place in found.outside] == outside


def test_the_scarcest_resource_says_how_full_a_node_is() -> None:
    pods = [pod("p", "n0", cpu=1.0, memory=6.0), pod("q", "n0", cpu=0.5)]
    cell = mapped(Sight(nodes=NODES, pods=pods)).nodes[0]
    assert (cell.use, cell.pods) == (0.75, 2)
    assert cell.amounts == "cpu 1.5 of 4, memory 6 of 8"


def test_what_has_ended_or_has_no_node_takes_no_room() -> None:
    pods = [pod("done", "n0", phase="Succeeded", cpu=4.0), pod("failed", "n0", phase="Failed", cpu=4.0), pod("no", "")]
    assert {cell.pods for cell in mapped(Sight(nodes=NODES, pods=pods)).nodes} == {0}


def test_domains_are_as_full_as_their_nodes_and_jobs_are_listed_by_node() -> None:
    pods = [pod("p", "n0", "job", cpu=4.0), pod("q", "n1", "job"), pod("r", "n0", "job", cpu=0.0), pod("s", "n1")]
    found = mapped(Sight(nodes=NODES, pods=pods, hyper_nodes=[hyper_node("a", 1, ("n0", "n1"))]))
    assert found.domains[0].use == 0.5
    assert found.jobs == ("ns/job",)
    assert [cell.jobs for cell in found.nodes[:2]] == [((0, 2),), ((0, 1),)]
