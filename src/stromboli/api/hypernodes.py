"""Which nodes the members of a HyperNode select (spec 01 section 11, spec 03 section 8.1).

Regular expressions are RE2, as admission checks them, so that no expression can take for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

import re2  # type: ignore[import-untyped]

from stromboli.api.core import MemberSelector, Node
from stromboli.api.selectors import matches_selector

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False


@lru_cache(maxsize=4096)
def finder(pattern: str) -> Callable[[str], bool]:
    """Tells whether a name contains a match; one that does not compile is contained in no name."""
    try:
        search = re2.compile(pattern, _OPTIONS).search
    except re2.error:
        return lambda _name: False
    return lambda name: search(name) is not None


def selected(selector: MemberSelector | None, nodes: Iterable[Node]) -> Iterator[str]:
    """Names that a selector stands for, possibly repeated: its exact name, there or not, and the nodes it matches."""
    if selector is None:
        return
    if selector.exact_match is not None and selector.exact_match.name:
        yield selector.exact_match.name
    if selector.regex_match is not None or has_labels(selector):
        yield from (node.name for node in nodes if matches(selector, node))


def matches(selector: MemberSelector, node: Node) -> bool:
    """Whether the node is selected by something else than its exact name."""
    if selector.regex_match is not None and finder(selector.regex_match.pattern)(node.name):
        return True
    return has_labels(selector) and matches_selector(selector.label_match, node.metadata.labels, absent=False)


def has_labels(selector: MemberSelector) -> bool:
    """Whether there is a label selector that selects something; an empty one does not."""
    labels = selector.label_match
    return labels is not None and bool(labels.match_labels or labels.match_expressions)
