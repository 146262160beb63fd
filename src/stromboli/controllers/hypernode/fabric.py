"""HyperNodes from the ports of an InfiniBand fabric (spec 03 section 8.4). Pure.

Leaf switches that share a node, directly or through others, are one group of nodes; all groups hang on one spine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from stromboli.api.phases import MemberType
from stromboli.controllers.hypernode.topologies import Discovered

SOURCE = "ufm"
_COMPUTER = "Computer"
_SPINE = "spine-hn"


def discover(ports: Iterable[Mapping[str, object]]) -> list[Discovered]:
    """The HyperNodes of a fabric from the answer of its manager."""
    groups = _groups(_nodes_by_leaf(ports))
    leaves = [
        Discovered(f"leaf-hn-{number}", 1, MemberType.NODE, tuple(sorted(nodes))) for number, nodes in enumerate(groups)
    ]
    if not leaves:
        return []
    children = tuple(sorted(leaf.name for leaf in leaves))  # as texts: leaf-hn-10 comes before leaf-hn-2
    return [*leaves, Discovered(_SPINE, 2, MemberType.HYPER_NODE, children)]


def _nodes_by_leaf(ports: Iterable[Mapping[str, object]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for port in ports:
        leaf, node = str(port.get("peer_node_name") or ""), str(port.get("system_name") or "")
        if _COMPUTER in str(port.get("description") or "") and leaf and node:
            found[leaf].add(node)
    return found


def _groups(by_leaf: Mapping[str, set[str]]) -> list[set[str]]:
    """Nodes of connected leaves, in the order of each group's first leaf."""
    by_node: dict[str, set[str]] = defaultdict(set)
    for leaf, nodes in by_leaf.items():
        for node in nodes:
            by_node[node].add(leaf)
    groups: list[set[str]] = []
    seen: set[str] = set()
    for first in sorted(by_leaf):
        if first in seen:
            continue
        nodes, waiting = set[str](), [first]
        seen.add(first)
        while waiting:
            for node in by_leaf[waiting.pop()] - nodes:
                nodes.add(node)
                waiting += by_node[node] - seen
                seen |= by_node[node]
        groups.append(nodes)
    return groups
