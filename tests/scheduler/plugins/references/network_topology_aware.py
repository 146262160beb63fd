"""network-topology-aware (spec 06 section 25): scores of nodes and of HyperNodes, and gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stromboli.api import core
from tests.scheduler.plugins.references.telling import Place, Told, amount, request, room

TOP = "<cluster-top-hypernode>"


@dataclass
class NetworkTopology:
    """The plugin's arguments, and in which HyperNode each gang has been allocated."""

    weights: Mapping[str, int]
    weight: int = 1
    packs_normal_pods: bool = True
    fading: float = 0.8
    most: int = 8
    allocated: dict[str, str] = field(default_factory=dict)

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """It filters no nodes."""
        return []

    # Nodes

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """By nearness to the gang, or for pods without a topology by how full HyperNodes get."""
        if told.group_of(pod).spec.network_topology is not None:
            return self._near(told, pod, nodes)
        if not self.packs_normal_pods:
            return {}
        return {node.name: self._packed(told, pod, node) * 100 * self.weight for node in nodes}

    def _near(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        allocated = self.allocated.get(told.group_of(pod).name, "")
        if not allocated:
            return {}
        base = {node.name: nearness(told, lowest(told, node.name), allocated) for node in nodes}
        most = max(base.values())
        shared = sum(score == most for score in base.values()) > 1
        for name, score in base.items():
            if shared and score == most:
                base[name] += part_on(told, told.group_of(pod), members(told, lowest(told, name)))
        return {name: score * 100 * self.weight for name, score in base.items()}

    def _packed(self, told: Told, pod: core.Pod, node: core.Node) -> float:
        score = weights = 0.0
        tiers = [tier(told, name) for name in all_names(told)]
        for level in range(min(tiers), max(tiers) + 1):
            own = self.fading ** (level - 1)
            holding = [n for n in all_names(told) if tier(told, n) == level and node.name in members(told, n)]
            asked = {name: request(pod, name) for name in self.weights}
            score += own * (self._fullness(told, members(told, holding[0]), asked) if holding else 1.0)
            weights += own
        return score / weights if weights else 0.0

    def _fullness(self, told: Told, nodes: Sequence[str], asked: Mapping[str, float]) -> float:
        score = weights = 0.0
        for name, amount_ in asked.items():
            if amount_ <= 0:
                continue
            full = sum(booked(told, node, name) for node in nodes) + amount_
            allocatable = sum(room(told.nodes[node], name) for node in nodes)
            if full > allocatable:
                return 0.0
            score += self.weights[name] * full / allocatable
            weights += self.weights[name]
        return score / weights if weights > 0 else 0.0

    # HyperNodes

    def hyper_nodes(self, told: Told, group: core.PodGroup, candidates: Sequence[str]) -> dict[str, float]:
        """With everything the gang asks for; of equally full ones those that have more of it."""
        pods = pods_of(told, group)
        asked = {name: sum(request(pod, name) for pod in pods) for name in self.weights}
        base = {name: self._fullness(told, members(told, name), asked) for name in candidates}
        most = max(base.values())
        shared = sum(score == most for score in base.values()) > 1
        for name, score in base.items():
            if shared and score == most:
                base[name] += part_on(told, group, members(told, name))
        return {name: score * 100 * self.weight for name, score in base.items()}

    def gradient(self, told: Told, group: core.PodGroup, start: str, *, evict: bool) -> list[list[str]]:
        """HyperNodes by tier, names sorted inside a tier; for eviction the highest tier first."""
        topology = group.spec.network_topology
        allowed = topology.highest_tier_allowed if topology else None
        if topology is None or topology.mode != "hard" or allowed is None:
            return [[start]]
        root, allocated = start, self.allocated.get(group.name, "")
        if allocated:
            fitting = [name for name in line(told, allocated) if tier(told, name) <= allowed]
            if not fitting:
                return []
            highest = fitting[-1]
            if highest in line(told, start):
                root = start
            elif start in line(told, highest):
                root = highest
            else:
                return []
        below = [name for name in all_names(told) if root in line(told, name) and tier(told, name) <= allowed]
        if not allocated:
            below = [name for name in below if self._may_hold(told, name, group, evict=evict)]
        tiers = sorted({tier(told, name) for name in below}, reverse=evict)
        return [sorted(name for name in below if tier(told, name) == each) for each in tiers]

    @staticmethod
    def _may_hold(told: Told, hyper_node: str, group: core.PodGroup, *, evict: bool) -> bool:
        listed = group.spec.min_resources or {}
        least = {"cpu": 0.0, "memory": 0.0} | {name: amount(listed, name) for name in listed}
        nodes = members(told, hyper_node)
        if hyper_node != TOP and not told.hyper_nodes[hyper_node].spec.members:
            return True  # nobody knows what is in it
        idle = {name: sum(told.idle(node, name) for node in nodes) for name in least}
        future = {name: sum(told.future(node, name) for node in nodes) for name in least}
        there = {name: sum(room(told.nodes[node], name) for node in nodes) for name in least}
        return any(all(least[name] <= have[name] for name in least) for have in ([there] if evict else [idle, future]))


def booked(told: Told, node: str, resource: str) -> float:
    """What is used, as the events of the session have changed it: promises count, what is evicted does not."""
    evicted = sum(request(pod, resource) for pod in told.on(node, Place.EVICTED))
    return told.used(node, resource) + told.promised(node, resource) - evicted


def all_names(told: Told) -> list[str]:
    """All HyperNodes, the virtual one above all nodes last."""
    return [*told.hyper_nodes, TOP]


def tier(told: Told, name: str) -> int:
    """The virtual HyperNode is one tier above all others."""
    known = [one.spec.tier for one in told.hyper_nodes.values()]
    return told.hyper_nodes[name].spec.tier if name != TOP else max(known, default=0) + 1


def children(told: Told, name: str) -> list[tuple[str, str]]:
    """Kind and name of the members."""
    found = [(one.type, one.selector) for one in told.hyper_nodes[name].spec.members]
    return [(kind, one.exact_match.name) for kind, one in found if one is not None and one.exact_match is not None]


def members(told: Told, name: str) -> list[str]:
    """Nodes of a HyperNode and of those below it."""
    if name == TOP:
        return list(told.nodes)
    if name not in told.hyper_nodes:
        return []
    found = []
    for kind, child in children(told, name):
        found += [child] if kind == "Node" else members(told, child)
    return [node for node in found if node in told.nodes]


def line(told: Told, name: str) -> list[str]:
    """A HyperNode and those above it, up to the virtual one."""
    found = [name]
    while found[-1] != TOP:
        above = [one for one in told.hyper_nodes if ("HyperNode", found[-1]) in children(told, one)]
        found.append(above[0] if above else TOP)
    return found


def lowest(told: Told, node: str) -> str:
    """The HyperNode of the lowest tier that holds a node; empty when none does."""
    holding = [name for name in told.hyper_nodes if node in members(told, name)]
    return min(holding, key=lambda name: tier(told, name)) if holding else ""


def nearness(told: Told, mine: str, allocated: str) -> float:
    """1 in the same HyperNode, less the higher the lowest common one is."""
    if not mine:
        return 0.0
    if mine == allocated:
        return 1.0
    common = next(name for name in line(told, mine) if name in line(told, allocated))
    tiers = [tier(told, name) for name in all_names(told)]
    if min(tiers) == max(tiers):
        return 1.0
    return (max(tiers) - tier(told, common)) / (max(tiers) - min(tiers))


def pods_of(told: Told, group: core.PodGroup) -> list[core.Pod]:
    """All pods of a group."""
    return [pod for pod in told.pods.values() if told.group_of(pod).name == group.name]


def part_on(told: Told, group: core.PodGroup, nodes: Sequence[str]) -> float:
    """Which part of the gang is on some nodes."""
    pods, where = pods_of(told, group), told.where()
    there = [pod for pod in pods if pod.name in where and where[pod.name][0] in nodes]
    return len(there) / len(pods)
