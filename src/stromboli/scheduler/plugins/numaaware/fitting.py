"""Whether the kubelet of a node would admit a pod, and which CPUs its containers would get."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from stromboli.scheduler.plugins.numaaware.assigning import assign
from stromboli.scheduler.plugins.numaaware.hints import Hints, TopologyPolicy, cpu_hints
from stromboli.scheduler.plugins.numaaware.layouts import NOTHING, Cpus, Layout


@dataclass(frozen=True, slots=True)
class Fit:
    """CPUs of all containers together, or the position of the container that is not admitted."""

    cpus: Cpus = NOTHING
    refused: int | None = None


@lru_cache(maxsize=8192)
def fit(layout: Layout, available: Cpus, policy: str, counts: tuple[int, ...]) -> Fit:
    """Containers in order, each with so many CPUs of its own (0: none), on a node whose kubelet has this policy.

    A container that is admitted although there are not enough CPUs gets none of its own (quirk, kept).
    """
    assigned, manager = NOTHING, TopologyPolicy(policy, tuple(layout.numa_nodes))
    for position, count in enumerate(counts):
        free = available - assigned
        hints: Hints = {"cpu": cpu_hints(layout, free, count)} if count else {}
        best, admitted = manager.admit([hints])
        if not admitted:
            return Fit(refused=position)
        if count:
            assigned |= assign(layout, free, count, best.mask)
    return Fit(assigned)
