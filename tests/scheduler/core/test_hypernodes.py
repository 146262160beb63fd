"""HyperNode trees (spec 04 sections 15 and 35)."""

from __future__ import annotations

import pytest

from stromboli.api import core, hypernodes
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, HyperNode
from stromboli.scheduler.core.view import HyperNodeView
from stromboli.testing.builders import hyper_node, node
from tests.scheduler.core.worlds import feed, world

LEAVES = [hyper_node(f"s{index}", 1, (f"n{2 * index}", f"n{2 * index + 1}")) for index in range(4)]
TREE = [
    *LEAVES,
    hyper_node("s4", 2, children=("s0", "s1")),
    hyper_node("s5", 2, children=("s2", "s3")),
    hyper_node("s6", 3, children=("s4", "s5")),
]
NODES = [node(f"n{index}").label(kind="a" if index < 4 else "b").build() for index in range(8)]


def view(mirror: Mirror) -> HyperNodeView:
    return mirror.hyper_nodes.view(mirror.node_list, mirror.nodes.generation)


def members(mirror: Mirror, name: str) -> list[str]:
    seen = view(mirror)
    return [known.name for row in seen.rows[name].tolist() if (known := mirror.node_list[row]) is not None]


def test_children_contribute_their_nodes() -> None:
    mirror = world(NODES, TREE)
    assert members(mirror, "s4") == ["n0", "n1", "n2", "n3"]
    assert members(mirror, "s6") == [f"n{index}" for index in range(8)]
    assert view(mirror).by_name["s0"].parent == "s4"


def test_a_deleted_middle_leaves_its_children_without_parent_and_returns() -> None:
    mirror = world(NODES, TREE)
    mirror.delete_hyper_node("s4")
    assert members(mirror, "s6") == ["n4", "n5", "n6", "n7"]
    assert view(mirror).by_name["s0"].parent == ROOT_HYPER_NODE
    feed(mirror, TREE[4])
    assert members(mirror, "s6") == [f"n{index}" for index in range(8)]


def test_a_deleted_leaf_takes_its_nodes_with_it() -> None:
    mirror = world(NODES, TREE)
    mirror.delete_hyper_node("s0")
    assert members(mirror, "s4") == ["n2", "n3"]
    assert members(mirror, "s6") == ["n2", "n3", "n4", "n5", "n6", "n7"]


def test_a_leaf_that_moves_changes_both_parents() -> None:
    mirror = world(NODES, TREE)
    feed(mirror, hyper_node("s5", 2, children=("s3",)))
    feed(mirror, hyper_node("s4", 2, children=("s0", "s1", "s2")))
    assert members(mirror, "s4") == ["n0", "n1", "n2", "n3", "n4", "n5"]
    assert members(mirror, "s5") == ["n6", "n7"]


def test_two_parents_are_a_problem_until_resolved() -> None:
    mirror = world(NODES, TREE, hyper_node("x", 2, children=("s0",)))
    assert not view(mirror).ready
    assert mirror.hyper_nodes.problems == ["HyperNode s0 has two parents, s4 and x"]
    mirror.delete_hyper_node("x")
    assert view(mirror).ready


def test_a_circle_is_a_problem() -> None:
    mirror = world(hyper_node("a", 1, children=("b",)), hyper_node("b", 2, children=("a",)))
    assert not view(mirror).ready
    assert "is among its own descendants" in mirror.hyper_nodes.problems[0]


def selecting(name: str, selector: core.MemberSelector) -> core.HyperNode:
    members = (core.HyperNodeMember(type="Node", selector=selector),)
    return core.HyperNode(metadata=core.ObjectMeta(name=name), spec=core.HyperNodeSpec(tier=1, members=members))


def test_patterns_and_labels_follow_nodes_as_they_come() -> None:
    pattern = core.MemberSelector(regex_match=core.MemberRegexMatch(pattern="[0-3]$"))
    labels = core.MemberSelector(label_match=core.LabelSelector(match_labels={"kind": "b"}))
    mirror = world(selecting("by-name", pattern), selecting("by-label", labels), NODES)
    assert members(mirror, "by-name") == ["n0", "n1", "n2", "n3"]
    assert members(mirror, "by-label") == ["n4", "n5", "n6", "n7"]
    mirror.delete_node("n5")
    feed(mirror, node("n13").build())
    feed(mirror, node("n4").label(kind="a").build())
    assert members(mirror, "by-label") == ["n6", "n7"]
    assert members(mirror, "by-name") == ["n0", "n1", "n2", "n3", "n13"]


def test_a_pattern_whose_backtracking_would_never_end_is_answered() -> None:
    pattern = core.MemberSelector(regex_match=core.MemberRegexMatch(pattern="^(a+)+$"))
    names = ["a" * 60, "a" * 60 + "b"]
    mirror = world(selecting("slow", pattern), [node(name).build() for name in names])
    assert members(mirror, "slow") == names[:1]


@pytest.mark.parametrize("pattern", ["[", "(?=n)n0", r"(n)\1", "n0", "^n[0-3]$", r"\bn1", "(?i)N2", "", "n{1,2}3"])
def test_scheduler_and_controller_match_alike(pattern: str) -> None:
    """Lookaheads and back references, of which an engine without backtracking knows nothing, match no node."""
    selector = core.MemberSelector(regex_match=core.MemberRegexMatch(pattern=pattern))
    assert members(world(selecting("h", selector), NODES), "h") == list(hypernodes.selected(selector, NODES))


def test_what_selects_nothing_is_empty() -> None:
    broken = core.MemberSelector(regex_match=core.MemberRegexMatch(pattern="["))
    nothing = core.MemberSelector(label_match=core.LabelSelector())
    invalid = core.MemberSelector(
        label_match=core.LabelSelector(match_expressions=(core.Requirement(key="k", operator="Like"),))
    )
    mirror = world(NODES, selecting("a", broken), selecting("b", nothing), selecting("c", invalid), hyper_node("d", 1))
    assert members(mirror, "a") == members(mirror, "b") == members(mirror, "c") == []
    assert "d" not in view(mirror).rows, "without members there is no entry"


def test_the_root_is_above_everything_and_holds_every_node() -> None:
    mirror = world(NODES, TREE)
    root = view(mirror).by_name[ROOT_HYPER_NODE]
    assert (root.tier, root.children) == (4, {"s6"})
    assert members(mirror, ROOT_HYPER_NODE) == [f"n{index}" for index in range(8)]
    assert view(mirror).tiers == [1, 2, 3, 4]
    assert view(world()).by_name[ROOT_HYPER_NODE].tier == 1


def test_common_ancestors() -> None:
    seen = view(world(NODES, TREE))
    assert seen.ancestors("s0") == ["s0", "s4", "s6", ROOT_HYPER_NODE]
    assert seen.lowest_common_ancestor("s0", "s1") == "s4"
    assert seen.lowest_common_ancestor("s0", "s3") == "s6"
    assert seen.lowest_common_ancestor("s4", "s0") == "s4"
    assert seen.lowest_common_ancestor("", "s0") == "s0"
    assert seen.lowest_common_ancestor("s0", "") == "s0"
    assert seen.lowest_common_ancestor("s0", "unknown") == ""


def test_the_lowest_hyper_node_of_a_node() -> None:
    mirror = world(NODES, TREE)
    assert view(mirror).lowest_of_row[0] == "s0"
    feed(mirror, node("alone").build())
    assert view(mirror).lowest_of_row.get(8, "") == ""


def test_an_installed_tree_is_used_as_it_is() -> None:
    mirror = world(NODES)
    mirror.hyper_nodes.install({"a": HyperNode("a", 1)}, {"a": ["n0", "gone"], "b": ["n1"]}, [1, 2])
    assert members(mirror, "a") == ["n0"]
    assert members(mirror, "b") == ["n1"]
    assert view(mirror).by_name[ROOT_HYPER_NODE].tier == 3
