"""Topology hints: on which NUMA nodes a container could run, and what a policy makes of them (spec 06 section 26.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import product

from stromboli.scheduler.plugins.numaaware.layouts import Cpus, Layout, mask_of

NONE = "none"
"""The policy that admits everything and assigns nothing."""


@dataclass(frozen=True, slots=True)
class Hint:
    """NUMA nodes as a bit mask (None: any), and whether no fewer would do."""

    mask: int | None
    preferred: bool


ANY_PREFERRED = Hint(None, preferred=True)
ANY = Hint(None, preferred=False)
Hints = Mapping[str, Sequence[Hint] | None]
"""One provider's hints by resource; None when the provider has no preference about it."""


@lru_cache(maxsize=4096)
def cpu_hints(layout: Layout, available: Cpus, count: int) -> tuple[Hint, ...]:
    """Where so many of the available CPUs are; preferred are choices of the smallest size that could do at all."""
    smallest = min((size for _, size, cpus in layout.masks if len(cpus) >= count), default=0)
    return tuple(
        Hint(mask, preferred=size == smallest) for mask, size, cpus in layout.masks if len(cpus & available) >= count
    )


@dataclass(frozen=True, slots=True)
class TopologyPolicy:
    """A node's topology manager: the name of its policy, and the node's NUMA nodes."""

    name: str
    numa_nodes: tuple[int, ...]

    def admit(self, providers: Sequence[Hints]) -> tuple[Hint, bool]:
        """The best hint, and whether the policy admits a container with it."""
        everywhere = mask_of(self.numa_nodes)
        listed = [list(hints) for hints in _by_resource(providers)]
        match self.name:
            case "best-effort":
                return merge(everywhere, listed), True
            case "restricted":
                best = merge(everywhere, listed)
                return best, best.preferred
            case "single-numa-node":
                best = merge(everywhere, [_only_single(hints) for hints in listed])
                return best, best.preferred
            case _:
                return ANY, True


def merge(everywhere: int, listed: Iterable[Sequence[Hint]]) -> Hint:
    """The best of all combinations of one hint per resource; with a resource without hints there is none."""
    best = Hint(everywhere, preferred=False)
    for combination in product(*listed):
        mask = reduce(int.__and__, (everywhere if hint.mask is None else hint.mask for hint in combination), everywhere)
        candidate = Hint(mask, preferred=all(hint.preferred for hint in combination))
        if mask and _better(candidate, best):
            best = candidate
    return best


def _by_resource(providers: Sequence[Hints]) -> Iterable[Sequence[Hint]]:
    for provider in providers:
        if not provider:
            yield [ANY_PREFERRED]
        for hints in provider.values():
            yield [ANY_PREFERRED] if hints is None else hints or [ANY]


def _only_single(hints: Sequence[Hint]) -> list[Hint]:
    return [hint for hint in hints if hint.preferred and (hint.mask is None or hint.mask.bit_count() == 1)]


def _better(candidate: Hint, best: Hint) -> bool:
    if candidate.preferred != best.preferred:
        return candidate.preferred
    assert candidate.mask is not None and best.mask is not None
    return (candidate.mask.bit_count(), candidate.mask) < (best.mask.bit_count(), best.mask)
