"""HyperNodes as a map: domains from the widest to the narrowest, the nodes of each, how full they are and with what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stromboli.api import core
from stromboli.api.hypernodes import selected
from stromboli.dashboard import amounts
from stromboli.dashboard.jobs import running_on
from stromboli.dashboard.objects import is_ready
from stromboli.dashboard.sights import Sight
from stromboli.dashboard.trees import preorder

CHILD = "HyperNode"
"""Type of a member that is a HyperNode itself."""


@dataclass(frozen=True, slots=True)
class NodeCell:
    """A node. ``use`` is the share of its scarcest resource that is asked for; ``jobs`` are places in the map's list of
    jobs, each with its number of pods here.
    """

    name: str
    ready: bool
    schedulable: bool
    use: float
    amounts: str
    pods: int
    jobs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """A HyperNode. ``nodes`` are places in the map's list of nodes, only of those in no narrower domain; ``size``
    counts all of them, ``use`` is their mean.
    """

    name: str
    tier: int
    tier_name: str
    depth: int
    size: int
    use: float
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopologyMap:
    """All of it. ``outside`` are nodes in no domain."""

    domains: tuple[Domain, ...]
    nodes: tuple[NodeCell, ...]
    jobs: tuple[str, ...]
    outside: tuple[int, ...]


def mapped(sight: Sight) -> TopologyMap:
    """The map of one sight."""
    nodes = sorted(sight.nodes, key=lambda node: node.name)
    jobs = running_on(sight)
    names = sorted({job for on_node in jobs.values() for job in on_node})
    cells = _cells(nodes, sight, jobs, {name: place for place, name in enumerate(names)})
    places = {node.name: place for place, node in enumerate(nodes)}
    parents = _parents(sight.hyper_nodes)
    tree = list(preorder(sight.hyper_nodes, lambda item: parents.get(item.name, "")))
    members = _members(sight.hyper_nodes, nodes)
    homes = _homes([hyper_node for _, hyper_node in tree], members)
    domains = tuple(_domain(depth, item, members, homes, cells, places) for depth, item in tree)
    outside = tuple(place for name, place in places.items() if name not in homes)
    return TopologyMap(domains, tuple(cells), tuple(names), outside)


def _parents(hyper_nodes: Iterable[core.HyperNode]) -> dict[str, str]:
    """The HyperNode that has another one among its members; the first by name where there are several."""
    parents: dict[str, str] = {}
    for item in sorted(hyper_nodes, key=lambda item: item.name):
        for child in _children(item):
            parents.setdefault(child, item.name)
    return parents


def _children(item: core.HyperNode) -> list[str]:
    selectors = [member.selector for member in item.spec.members if member.type == CHILD]
    return [one.exact_match.name for one in selectors if one is not None and one.exact_match is not None]


def _members(hyper_nodes: Sequence[core.HyperNode], nodes: Sequence[core.Node]) -> dict[str, set[str]]:
    """Names of nodes by HyperNode, those of its children included."""
    known = {item.name: item for item in hyper_nodes}
    found: dict[str, set[str]] = {}

    def collect(name: str, above: frozenset[str]) -> set[str]:
        if name not in found and name in known and name not in above:
            own = set(_own(known[name], nodes))
            found[name] = own.union(*(collect(child, above | {name}) for child in _children(known[name])))
        return found.get(name, set())

    for name in known:
        collect(name, frozenset())
    return found


def _own(item: core.HyperNode, nodes: Sequence[core.Node]) -> Iterable[str]:
    for member in item.spec.members:
        if member.type != CHILD:
            yield from selected(member.selector, nodes)


def _homes(hyper_nodes: Iterable[core.HyperNode], members: Mapping[str, set[str]]) -> dict[str, str]:
    """The narrowest domain of each node."""
    homes: dict[str, str] = {}
    for item in sorted(hyper_nodes, key=lambda item: item.spec.tier):
        for node in members.get(item.name, ()):
            homes.setdefault(node, item.name)
    return homes


def _domain(
    depth: int,
    item: core.HyperNode,
    members: Mapping[str, set[str]],
    homes: Mapping[str, str],
    cells: Sequence[NodeCell],
    places: Mapping[str, int],
) -> Domain:
    there = sorted(places[name] for name in members.get(item.name, ()) if name in places)
    use = round(sum(cells[place].use for place in there) / len(there), 4) if there else 0.0
    own = tuple(place for place in there if homes[cells[place].name] == item.name)
    return Domain(item.name, item.spec.tier, item.spec.tier_name, depth, len(there), use, own)


# -- nodes -------------------------------------------------------------------------------------------------------------


def _cells(
    nodes: Sequence[core.Node], sight: Sight, jobs: Mapping[str, Mapping[str, int]], numbers: Mapping[str, int]
) -> list[NodeCell]:
    used: dict[str, dict[str, float]] = {}
    pods: dict[str, int] = {}
    for pod in sight.pods:
        if pod.holds:
            pods[pod.node] = pods.get(pod.node, 0) + 1
            sums = used.setdefault(pod.node, {})
            for resource, amount in pod.requests.items():
                sums[resource] = sums.get(resource, 0.0) + amount
    return [
        _cell(
            node,
            used.get(node.name, {}),
            pods.get(node.name, 0),
            tuple((numbers[job], count) for job, count in sorted(jobs.get(node.name, {}).items())),
        )
        for node in nodes
    ]


def _cell(node: core.Node, used: Mapping[str, float], pods: int, jobs: tuple[tuple[int, int], ...]) -> NodeCell:
    allocatable = {name: amounts.amount(node.status.allocatable, name) for name in node.status.allocatable}
    shown = [
        name
        for name in amounts.ordered(allocatable)
        if allocatable.get(name) and (name in used or not amounts.is_minor(name))
    ]
    use = max((amounts.part(used.get(name, 0.0), float(allocatable[name] or 0)) for name in shown), default=0.0)
    told = ", ".join(
        f"{name} {amounts.text(used.get(name, 0.0), name)} of {amounts.text(allocatable[name], name)}" for name in shown
    )
    return NodeCell(node.name, is_ready(node), not node.spec.unschedulable, use, told, pods, jobs)
