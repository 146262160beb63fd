"""Which CPUs a container gets (spec 06 section 26.1): whole sockets, then whole cores, then single CPUs."""

from __future__ import annotations

from functools import lru_cache

from stromboli.scheduler.plugins.numaaware.layouts import NOTHING, Cpus, Layout


def assign(layout: Layout, available: Cpus, count: int, mask: int | None) -> Cpus:
    """CPUs of the NUMA nodes in the mask first, the rest from anywhere; nothing when there are not enough."""
    preferred = NOTHING
    if mask is not None:
        inside = NOTHING.union(*(cpus for numa, cpus in layout.by_numa.items() if mask >> numa & 1))
        preferred = available & inside
    first = take(layout, preferred, min(count, len(preferred)))
    rest = take(layout, available - first, count - len(first))
    return first | rest if len(first) + len(rest) == count else NOTHING


@lru_cache(maxsize=4096)
def take(layout: Layout, free: Cpus, count: int) -> Cpus:
    """So many of the free CPUs, as close to each other as can be; nothing when there are not enough."""
    free = free & layout.all
    if count <= 0 or len(free) < count:
        return NOTHING
    taking = _Taking(layout, free, count)
    taking.sockets()
    taking.cores()
    taking.cpus()
    return frozenset(taking.taken)


class _Taking:
    def __init__(self, layout: Layout, free: Cpus, count: int) -> None:
        self._layout = layout
        self._free = set(free)
        self._needed = count
        self.taken: set[int] = set()

    def sockets(self) -> None:
        """Whole sockets while as much is needed, lowest ids first."""
        for _, cpus in sorted(self._layout.by_socket.items()):
            if self._needed >= self._layout.cpus_per_socket and self._needed >= len(cpus) and cpus <= self._free:
                self._move(cpus)

    def cores(self) -> None:
        """Whole cores while as much is needed: on sockets in use, on full sockets, lowest ids first."""
        while self._needed >= self._layout.cpus_per_core:
            used, free = self._used_sockets(), self._free_by_socket()
            whole = [
                core for core, cpus in self._layout.by_core.items() if cpus <= self._free and len(cpus) <= self._needed
            ]
            if not whole:
                return
            best = min(whole, key=lambda core: (core[0] not in used, free[core[0]], core))
            self._move(self._layout.by_core[best])

    def cpus(self) -> None:
        """Single CPUs: on sockets in use, on full sockets, on full cores, lowest ids first."""
        while self._needed > 0:
            used, free = self._used_sockets(), self._free_by_socket()
            self._move(frozenset([min(self._free, key=lambda cpu: self._rank(cpu, used, free))]))

    def _rank(self, cpu: int, used: set[int], free: dict[int, int]) -> tuple[bool, int, int, int, int]:
        socket, _ = core = self._layout.core_of(cpu)
        return socket not in used, free[socket], socket, len(self._layout.by_core[core] & self._free), cpu

    def _used_sockets(self) -> set[int]:
        return {self._layout.places[cpu].socket for cpu in self.taken}

    def _free_by_socket(self) -> dict[int, int]:
        return {socket: len(cpus & self._free) for socket, cpus in self._layout.by_socket.items()}

    def _move(self, cpus: Cpus) -> None:
        self._free -= cpus
        self.taken |= cpus
        self._needed -= len(cpus)
