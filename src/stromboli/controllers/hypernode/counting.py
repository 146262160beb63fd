"""How many nodes a HyperNode selects (spec 03 section 8.1). Pure.

Members are counted by name, whatever their type: an exact name counts whether or not it exists, and a child HyperNode
counts as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stromboli.api.core import HyperNode, MemberSelector, Node
from stromboli.api.selectors import matches_selector
from stromboli.controllers.hypernode.patterns import finder


def count(hyper_node: HyperNode, nodes: Iterable[Node]) -> int:
    """``status.nodeCount``: distinct names that the members select."""
    known = list(nodes)
    return len({name for member in hyper_node.spec.members for name in _selected(member.selector, known)})


def concerns(hyper_node: HyperNode, *nodes: Node) -> bool:
    """Whether some of these nodes is selected by something else than its exact name."""
    selectors = [member.selector for member in hyper_node.spec.members if member.selector is not None]
    return any(_matches(selector, node) for selector in selectors for node in nodes)


def _selected(selector: MemberSelector | None, nodes: list[Node]) -> Iterator[str]:
    if selector is None:
        return
    if selector.exact_match is not None and selector.exact_match.name:
        yield selector.exact_match.name
    yield from (node.name for node in nodes if _matches(selector, node))


def _matches(selector: MemberSelector, node: Node) -> bool:
    if selector.regex_match is not None and finder(selector.regex_match.pattern)(node.name):
        return True
    labels = selector.label_match
    if labels is None or not (labels.match_labels or labels.match_expressions):
        return False
    return matches_selector(labels, node.metadata.labels, absent=False)
