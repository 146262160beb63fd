"""Device claims in predicates (spec 06 section 17.10): which nodes are refused.

The devices here have one attribute, ``size``, and every selector says which sizes will do; expressions of other kinds
have tests of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stromboli.api import core
from tests.scheduler.plugins.references.claims import Some
from tests.scheduler.plugins.references.promising import promises
from tests.scheduler.plugins.references.telling import Told

Chosen = tuple[str, str]
"""Pool and device."""
Plan = dict[str, Sequence[Chosen]]
"""Devices by claim."""


@dataclass(frozen=True)
class Request:
    """So many devices of some sizes."""

    count: int
    sizes: frozenset[int]


@dataclass(frozen=True)
class Claim:
    """Requests, whether all devices must be of one size, and what the API server says was given."""

    requests: tuple[Request, ...]
    alike: bool = False
    given: tuple[Chosen, ...] = ()


@dataclass
class Devices:
    """Sizes of devices by pool and name; a pool with the name of a node is that node's, another is everybody's."""

    pools: dict[str, dict[str, int]] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    used: dict[str, Sequence[str]] = field(default_factory=dict)
    """Claims by pod."""

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """A claim that has its devices elsewhere, or one for which there are none."""

        def plan(pod: core.Pod, node: core.Node, before: Mapping[str, Sequence[Chosen]]) -> Plan | None:
            return self._plan(told, pod.name, node, before)

        return Some(["refused"]) if plan(pod, node, promises(told, plan)) is None else []

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """None."""
        return {}

    def _plan(self, told: Told, pod: str, node: core.Node, before: Mapping[str, Sequence[Chosen]]) -> Plan | None:
        """What claims of the pod get, or have been promised before."""
        given = {name: claim.given for name, claim in self.claims.items() if claim.given} | dict(before)
        wanted = []
        for name in self.used.get(pod, ()):
            if name not in given:
                wanted.append(name)
            elif any(pool in told.nodes and pool != node.name for pool, _ in given[name]):
                return None
        taken = {device for devices in given.values() for device in devices}
        fresh = next(self._solutions(node, wanted, taken), None)
        known = {name: before[name] for name in self.used.get(pod, ()) if name in before}
        return None if fresh is None else {**known, **fresh}

    def _solutions(
        self, node: core.Node, wanted: Sequence[str], taken: set[Chosen]
    ) -> Iterator[dict[str, list[Chosen]]]:
        """All ways to serve claims, in the order of claims, requests and devices."""
        if not wanted:
            yield {}
            return
        claim = self.claims[wanted[0]]
        places = [request.sizes for request in claim.requests for _ in range(request.count)]
        for chosen in self._fill(node, places, taken, claim.alike, []):
            for rest in self._solutions(node, wanted[1:], taken | set(chosen)):
                yield {wanted[0]: chosen, **rest}

    def _fill(
        self, node: core.Node, places: Sequence[frozenset[int]], taken: set[Chosen], alike: bool, so_far: list[Chosen]
    ) -> Iterator[list[Chosen]]:
        if len(so_far) == len(places):
            yield so_far
            return
        for pool, devices in self.pools.items():
            for name, size in devices.items():
                reached = pool == node.name or not pool.startswith("n")
                free = (pool, name) not in taken and (pool, name) not in so_far
                fits = size in places[len(so_far)] and (not alike or all(self._size(one) == size for one in so_far))
                if reached and free and fits:
                    yield from self._fill(node, places, taken, alike, [*so_far, (pool, name)])

    def _size(self, device: Chosen) -> int:
        return self.pools[device[0]][device[1]]
