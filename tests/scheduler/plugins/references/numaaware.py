"""numa-aware (spec 06 section 26): the filter, the score, and which CPUs a pod gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil

from stromboli.api import core
from tests.scheduler.plugins.references.telling import Act, Told, amount

POLICY = "volcano.sh/numa-topology-policy"
Cpus = frozenset[int]
Hint = tuple[frozenset[int], bool]
"""NUMA nodes, and whether it is preferred."""


@dataclass
class Numa:
    """The plugin's argument, and what nodes have told."""

    weight: int = 1
    topologies: dict[str, core.Numatopology] = field(default_factory=dict)

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """Steps 1 to 4 of 26.1."""
        if not is_guaranteed(pod):
            return []
        known, wanted = self.topologies.get(node.name), wish(pod)
        if wanted:
            refusal = self._unsuitable(told, known, wanted)
            if refusal:
                return [refusal]
        elif known is None or not _aligns(known):
            return []
        assert known is not None
        refused, _ = assign(known, self._allocatable(told, node.name), pod)
        return [f"container {refused} cannot be assigned by numa"] if refused else []

    def _unsuitable(self, told: Told, known: core.Numatopology | None, wanted: str) -> str:
        if known is None:
            return "numa info is empty"
        policies = known.spec.policies
        if policies.get("CPUManagerPolicy") != "static":
            return "cpu manager policy isn't static"
        if policies.get("TopologyManagerPolicy") != wanted:
            return f"task topology policy[{wanted}] is different with node[{policies.get('TopologyManagerPolicy', '')}]"
        if not known.spec.numares:
            return "no topo information"
        return "" if self._allocatable(told, known.name) else "cpu allocatable map is empty"

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """Fewest NUMA nodes first."""
        if not is_guaranteed(pod) or not wish(pod):
            return {}
        counts = {}
        for node in nodes:
            known = self.topologies[node.name]
            _, cpus = assign(known, self._allocatable(told, node.name), pod)
            counts[node.name] = len({known.spec.cpu_detail[str(cpu)].numa for cpu in cpus})
        most = max(counts.values())
        return {name: (100 - (100 * count // most if most else 0)) * self.weight for name, count in counts.items()}

    def _allocatable(self, told: Told, node: str) -> Cpus:
        """What the node has told, without what was given out since."""
        known = self.topologies[node]
        listed = known.spec.numares.get("cpu")
        free = cpus_of(listed.allocatable) if listed is not None else frozenset()
        given: dict[str, Cpus] = {}
        for step in told.steps:
            match step.act:
                case Act.PLACE | Act.PROMISE if step.node == node and is_guaranteed(told.pod(step.pod)):
                    if wish(told.pod(step.pod)) or _aligns(known):
                        _, given[step.pod] = assign(known, free, told.pod(step.pod))
                        free -= given[step.pod]
                case Act.EVICT | Act.GO if step.pod in given:
                    free |= given.pop(step.pod)
                case Act.CLOSE:
                    placed = told_until(told, step)
                    for name in [name for name in given if name not in placed]:
                        free |= given.pop(name)
        return free


def told_until(told: Told, step: object) -> set[str]:
    """Pods that are still on nodes after this step."""
    at = next(at for at, one in enumerate(told.steps) if one is step)
    before = Told(pods=told.pods, gone=told.gone, steps=told.steps[: at + 1])
    return set(before.where())


def wish(pod: core.Pod) -> str:
    """The policy that a pod wants, empty for none."""
    written = pod.metadata.annotations.get(POLICY, "")
    return "" if written == "none" else written


def is_guaranteed(pod: core.Pod) -> bool:
    """Every container has limits of cpu and memory, and asks for no less."""
    for one in [*pod.spec.init_containers, *pod.spec.containers]:
        for name in ("cpu", "memory"):
            limit = amount(one.resources.limits, name)
            asked = amount(one.resources.requests, name) if name in one.resources.requests else limit
            if not limit or asked != limit:
                return False
    return bool(pod.spec.containers)


def _aligns(known: core.Numatopology) -> bool:
    policies = known.spec.policies
    return policies.get("CPUManagerPolicy") == "static" and policies.get("TopologyManagerPolicy", "") not in (
        "",
        "none",
    )


def cpus_of(text: str) -> Cpus:
    """``0-3,7`` as a set."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return frozenset(found)


def assign(known: core.Numatopology, allocatable: Cpus, pod: core.Pod) -> tuple[str, Cpus]:
    """The first container that is not admitted, or the CPUs of all of them."""
    reserved = ceil(amount(known.spec.res_reserved, "cpu") / 1000)
    free = allocatable - take(known, frozenset(map(int, known.spec.cpu_detail)), reserved)
    every: list[int] = []
    policy = known.spec.policies.get("TopologyManagerPolicy", "")
    for container in pod.spec.containers:
        listed = container.resources.requests or container.resources.limits
        asked = amount(listed, "cpu") / 1000
        count = int(asked) if asked == int(asked) else 0
        nodes, preferred = best_hint(known, hints(known, free, count), policy)
        if policy in ("restricted", "single-numa-node") and not preferred:
            return container.name, frozenset()
        near = frozenset(cpu for cpu in free if known.spec.cpu_detail[str(cpu)].numa in nodes)
        if policy not in ("best-effort", "restricted", "single-numa-node"):
            near = free
        taken: Cpus = frozenset()
        if len(free) >= count:
            taken = take(known, near, min(count, len(near)))
            taken |= take(known, free - taken, count - len(taken))
        free -= taken
        every += taken
    return "", frozenset(every)


def numa_nodes(known: core.Numatopology) -> list[int]:
    """Their ids."""
    return sorted({place.numa for place in known.spec.cpu_detail.values()})


def hints(known: core.Numatopology, free: Cpus, count: int) -> list[Hint] | None:
    """None when the container does not care."""
    if count == 0:
        return None
    detail, found, least = known.spec.cpu_detail, [], None
    for size in range(1, len(numa_nodes(known)) + 1):
        for chosen in combinations(numa_nodes(known), size):
            if least is None and sum(place.numa in chosen for place in detail.values()) >= count:
                least = size
            if sum(detail[str(cpu)].numa in chosen for cpu in free) >= count:
                found.append((frozenset(chosen), size))
    return [(chosen, size == least) for chosen, size in found]


def best_hint(known: core.Numatopology, given: list[Hint] | None, policy: str) -> Hint:
    """Hints of the only provider merged."""
    everywhere = frozenset(numa_nodes(known))
    if given is None:
        listed: list[tuple[frozenset[int] | None, bool]] = [(None, True)]
    else:
        listed = [*given] or [(None, False)]
    if policy == "single-numa-node":
        listed = [
            (chosen, preferred) for chosen, preferred in listed if preferred and (chosen is None or len(chosen) == 1)
        ]
    best = (everywhere, False)
    for chosen, preferred in listed:
        mask = everywhere if chosen is None else chosen
        narrower = (len(mask), sum(2**one for one in mask)) < (len(best[0]), sum(2**one for one in best[0]))
        if (preferred and not best[1]) or (preferred == best[1] and narrower):
            best = (mask, preferred)
    return best


def take(known: core.Numatopology, free: Cpus, count: int) -> Cpus:
    """Whole sockets, then whole cores, then single CPUs."""
    detail = {int(cpu): place for cpu, place in known.spec.cpu_detail.items()}
    sockets = sorted({place.socket for place in detail.values()})
    cores = sorted({(place.socket, place.core) for place in detail.values()})
    taken: list[int] = []
    for kind, groups in (
        ("socket", [[cpu for cpu, place in detail.items() if place.socket == one] for one in sockets]),
        ("core", [[cpu for cpu, place in detail.items() if (place.socket, place.core) == one] for one in cores]),
    ):
        size = len(detail) // max(1, len(groups))
        for group in groups:
            if count - len(taken) >= size and all(cpu in free and cpu not in taken for cpu in group):
                taken += group
        assert kind
    while len(taken) < count:
        left = [cpu for cpu in free if cpu not in taken]

        def rank(cpu: int, left: Sequence[int] = tuple(left)) -> tuple[bool, int, int, int]:
            place = detail[cpu]
            used = any(detail[one].socket == place.socket for one in taken)
            of_socket = sum(detail[one].socket == place.socket for one in left)
            of_core = sum((detail[one].socket, detail[one].core) == (place.socket, place.core) for one in left)
            return not used, of_socket, of_core, cpu

        taken.append(min(left, key=rank))
    return frozenset(taken)
