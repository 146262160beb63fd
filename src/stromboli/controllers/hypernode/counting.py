"""How many nodes a HyperNode selects (spec 03 section 8.1). Pure.

Members are counted by name, whatever their type: an exact name counts whether or not it exists, and a child HyperNode
counts as one.
"""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.core import HyperNode, Node
from stromboli.api.hypernodes import matches, selected


def count(hyper_node: HyperNode, nodes: Iterable[Node]) -> int:
    """``status.nodeCount``: distinct names that the members select."""
    known = list(nodes)
    return len({name for member in hyper_node.spec.members for name in selected(member.selector, known)})


def concerns(hyper_node: HyperNode, *nodes: Node) -> bool:
    """Whether some of these nodes is selected by something else than its exact name."""
    selectors = [member.selector for member in hyper_node.spec.members if member.selector is not None]
    return any(matches(selector, node) for selector in selectors for node in nodes)
