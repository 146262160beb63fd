"""CPUs of a node and where they sit; sets of CPUs as the kubelet writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import combinations
from typing import TypeVar

from stromboli.api import core

K = TypeVar("K")
Cpus = frozenset[int]
Core = tuple[int, int]
"""(socket, core): core ids need not be unique across sockets."""

NOTHING: Cpus = frozenset()
LARGEST_CPU = 2**16


class BadCpuSet(ValueError):
    """A text that is no set of CPUs; the message quotes it."""


def parse_cpus(text: str) -> Cpus:
    """``0-3,7`` as a set. Raises :class:`BadCpuSet`."""
    found: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        try:
            start, end = int(first), int(last if dash else first)
        except ValueError as error:
            raise BadCpuSet(f'"{text}" is no set of CPUs: write it like 0-3,7') from error
        if not 0 <= start <= end <= LARGEST_CPU:
            raise BadCpuSet(f'"{text}" is no set of CPUs: "{part}" is no range')
        found.update(range(start, end + 1))
    return frozenset(found)


class Layout:
    """The CPUs of a node. Layouts are compared by identity: equal ones are made once and shared."""

    def __init__(self, places: Mapping[int, core.CpuInfo]) -> None:
        self.places = dict(places)
        self.all: Cpus = frozenset(places)
        self.by_numa = _grouped((place.numa, cpu) for cpu, place in places.items())
        self.by_socket = _grouped((place.socket, cpu) for cpu, place in places.items())
        self.by_core = _grouped(((place.socket, place.core), cpu) for cpu, place in places.items())

    @property
    def numa_nodes(self) -> list[int]:
        """Ids of the NUMA nodes, ascending."""
        return sorted(self.by_numa)

    @cached_property
    def masks(self) -> list[tuple[int, int, Cpus]]:
        """Every non-empty choice of NUMA nodes as (mask, size, its CPUs), by size, then lexicographically."""
        nodes = self.numa_nodes
        return [
            (mask_of(chosen), size, NOTHING.union(*(self.by_numa[node] for node in chosen)))
            for size in range(1, len(nodes) + 1)
            for chosen in combinations(nodes, size)
        ]

    @property
    def cpus_per_socket(self) -> int:
        """CPUs of a socket, given that all have as many."""
        return len(self.all) // max(len(self.by_socket), 1)

    @property
    def cpus_per_core(self) -> int:
        """CPUs of a core, given that all have as many."""
        return len(self.all) // max(len(self.by_core), 1)

    def core_of(self, cpu: int) -> Core:
        """Socket and core of a CPU."""
        place = self.places[cpu]
        return place.socket, place.core

    def per_numa(self, cpus: Iterable[int]) -> dict[int, int]:
        """How many of these CPUs are on each NUMA node, by ascending id; nodes without any are left out."""
        counts: dict[int, int] = {}
        for cpu in cpus:
            numa = self.places[cpu].numa
            counts[numa] = counts.get(numa, 0) + 1
        return dict(sorted(counts.items()))


def mask_of(numa_nodes: Iterable[int]) -> int:
    """NUMA nodes as a bit mask."""
    return sum(1 << node for node in numa_nodes)


def _grouped(pairs: Iterable[tuple[K, int]]) -> dict[K, Cpus]:
    groups: dict[K, set[int]] = {}
    for key, cpu in pairs:
        groups.setdefault(key, set()).add(cpu)
    return {key: frozenset(cpus) for key, cpus in groups.items()}
