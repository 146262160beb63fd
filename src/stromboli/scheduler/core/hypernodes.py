"""HyperNodes: which nodes each of them holds, and how they nest (spec 04 section 15).

The tree is rebuilt as a whole when a cycle asks for it and something has changed since: rebuilding a few hundred
HyperNodes takes milliseconds and leaves no state that could go stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from stromboli.api import core, hypernodes, selectors
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, HyperNode, Node
from stromboli.scheduler.core.tables import Rows
from stromboli.scheduler.core.view import HyperNodeView


class HyperNodes:
    """HyperNode objects as last seen, and the tree made from them."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        """Why the tree is not ready, in one line each."""
        self._resources: dict[str, core.HyperNode] = {}
        self._installed: _Tree | None = None
        self._view: HyperNodeView | None = None
        self._generation = -1

    def apply(self, resource: core.HyperNode) -> None:
        """Adds or replaces a HyperNode."""
        self._resources[resource.name] = resource
        self._view = None

    def delete(self, name: str, uid: str | None = None) -> None:
        """Removes a HyperNode, with ``uid`` only if that is still the one known."""
        known = self._resources.get(name)
        if known is not None and uid in (None, known.uid):
            del self._resources[name]
            self._view = None

    def nodes_changed(self) -> None:
        """Nodes came, went or changed labels."""
        self._view = None

    def install(
        self, by_name: Mapping[str, HyperNode], members: Mapping[str, Iterable[str]], tiers: Iterable[int]
    ) -> None:
        """Uses this tree as it is, instead of one made from HyperNode objects: for replays and vectors."""
        self._installed = _Tree(dict(by_name), {name: set(names) for name, names in members.items()}, set(tiers))
        self._view = None

    def view(self, node_list: Sequence[Node | None], generation: int) -> HyperNodeView:
        """The tree over the rows of the present nodes, with the virtual root."""
        if self._view is None or self._generation != generation:
            nodes = [node for node in node_list if node is not None]
            tree = self._installed or self._build(nodes)
            self._view = _with_root(tree, nodes, ready=not self.problems)
            self._generation = generation
        return self._view

    def _build(self, nodes: Sequence[Node]) -> _Tree:
        builder = _Builder(self._resources, nodes)
        tree = builder.build()
        self.problems = builder.problems
        return tree


class _Tree:
    def __init__(self, by_name: dict[str, HyperNode], members: dict[str, set[str]], tiers: set[int]) -> None:
        self.by_name, self.members, self.tiers = by_name, members, tiers


class _Builder:
    def __init__(self, resources: Mapping[str, core.HyperNode], nodes: Sequence[Node]) -> None:
        self._resources = resources
        self._nodes = nodes
        self._by_name: dict[str, HyperNode] = {}
        self._members: dict[str, set[str]] = {}
        self._building: set[str] = set()
        self.problems: list[str] = []

    def build(self) -> _Tree:
        for name, resource in self._resources.items():
            self._by_name[name] = HyperNode(name, resource.spec.tier, resource.spec.tier_name)
        for name, resource in self._resources.items():
            for child in _children(resource):
                self._adopt(name, child)
        for name in self._resources:
            self._collect(name)
        return _Tree(self._by_name, self._members, {resource.spec.tier for resource in self._resources.values()})

    def _adopt(self, parent: str, child: str) -> None:
        record = self._by_name.setdefault(child, HyperNode(child, 0))
        if record.parent and record.parent != parent:
            self.problems.append(f"HyperNode {child} has two parents, {record.parent} and {parent}")
            return
        record.parent = parent
        self._by_name[parent].children.add(child)

    def _collect(self, name: str) -> set[str]:
        if name in self._members:
            return self._members[name]
        if name in self._building:
            self.problems.append(f"HyperNode {name} is among its own descendants")
            return set()
        self._building.add(name)
        resource = self._resources.get(name)
        found: set[str] = set()
        if resource is not None and resource.spec.members:
            for member in resource.spec.members:
                found |= self._real_nodes(member)
            self._members[name] = found
        self._building.discard(name)
        return found

    def _real_nodes(self, member: core.HyperNodeMember) -> set[str]:
        selector = member.selector
        if selector is None:
            return set()
        if member.type == "HyperNode":
            return set(self._collect(selector.exact_match.name)) if selector.exact_match is not None else set()
        if selector.exact_match is not None:
            return {selector.exact_match.name}
        matches = _node_matcher(selector)
        return {node.name for node in self._nodes if matches(node)}


def _children(resource: core.HyperNode) -> list[str]:
    return [
        member.selector.exact_match.name
        for member in resource.spec.members
        if member.type == "HyperNode" and member.selector is not None and member.selector.exact_match is not None
    ]


def _node_matcher(selector: core.MemberSelector) -> Callable[[Node], bool]:
    if selector.regex_match is not None:
        contains = hypernodes.finder(selector.regex_match.pattern)
        return lambda node: contains(node.name)
    if not hypernodes.has_labels(selector):
        return lambda node: False
    return lambda node: selectors.matches_selector(selector.label_match, node.labels, absent=False)


def _with_root(tree: _Tree, nodes: Sequence[Node], *, ready: bool) -> HyperNodeView:
    top = max([*tree.tiers, 0]) + 1
    by_name = {
        name: HyperNode(name, known.tier, known.tier_name, known.parent, set(known.children))
        for name, known in tree.by_name.items()
    }
    root = HyperNode(ROOT_HYPER_NODE, top)
    for known in by_name.values():
        if not known.parent:
            known.parent = ROOT_HYPER_NODE
            root.children.add(known.name)
    by_name[ROOT_HYPER_NODE] = root
    rows_by_name = {node.name: node.row for node in nodes}
    rows = {name: _rows(members, rows_by_name) for name, members in tree.members.items()}
    rows[ROOT_HYPER_NODE] = np.array([node.row for node in nodes], dtype=np.intp)
    tiers = sorted({*tree.tiers, top})
    return HyperNodeView(ready=ready, by_name=by_name, rows=rows, tiers=tiers, lowest_of_row=_lowest(by_name, rows))


def _rows(members: Iterable[str], rows_by_name: Mapping[str, int]) -> Rows:
    return np.array(sorted(rows_by_name[name] for name in members if name in rows_by_name), dtype=np.intp)


def _lowest(by_name: Mapping[str, HyperNode], rows: Mapping[str, Rows]) -> dict[int, str]:
    lowest: dict[int, str] = {}
    known = [name for name in rows if name in by_name and name != ROOT_HYPER_NODE]
    for name in sorted(known, key=lambda name: (-by_name[name].tier, name), reverse=False):
        for row in rows[name].tolist():
            lowest[row] = name
    return lowest
