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
    if selector.regex_match is not None:
        found = finder(selector.regex_match.pattern)
        yield from (node.name for node in nodes if found(node.name))
    if _has_labels(selector):
        yield from (node.name for node in nodes if _labels_match(selector, node))


def _matches(selector: MemberSelector, node: Node) -> bool:
    if selector.regex_match is not None and finder(selector.regex_match.pattern)(node.name):
        return True
    return _has_labels(selector) and _labels_match(selector, node)


def _has_labels(selector: MemberSelector) -> bool:
    """Whether there is a label selector that selects something; an empty one does not."""
    labels = selector.label_match
    return labels is not None and bool(labels.match_labels or labels.match_expressions)


def _labels_match(selector: MemberSelector, node: Node) -> bool:
    return matches_selector(selector.label_match, node.metadata.labels, absent=False)
