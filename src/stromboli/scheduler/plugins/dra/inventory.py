"""The devices that drivers publish, and which of them a node can use (spec 06 section 17.10).

A pool is all slices of one driver and pool name of the newest generation. Pools with slices missing or with two devices
of one name cannot be picked from. Devices that share counters with others cannot be accounted for and are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import selectors

if TYPE_CHECKING:
    from stromboli.api import core


class DeviceId(NamedTuple):
    """Identity of a device in the cluster."""

    driver: str
    pool: str
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A device, with the slice that says from where it can be used."""

    id: DeviceId
    device: core.Device
    slice: core.ResourceSliceSpec


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """What a node can use of a pool; with a problem nothing of it can be picked."""

    driver: str
    name: str
    offers: tuple[Offer, ...]
    incomplete: bool = False
    invalid: str = ""

    @property
    def usable(self) -> bool:
        """Whether its devices can be picked."""
        return not self.incomplete and not self.invalid


@dataclass(frozen=True, slots=True)
class _Source:
    """All slices of a pool in its newest generation, by name."""

    driver: str
    name: str
    slices: tuple[core.ResourceSliceSpec, ...]
    incomplete: bool
    invalid: str


class Inventory:
    """All pools, and per node what it can use of them."""

    def __init__(self, slices: Iterable[core.ResourceSlice]) -> None:
        self._sources = list(_sources(slices))
        self._everywhere: list[_Source] = []
        self._by_node: defaultdict[str, list[_Source]] = defaultdict(list)
        for source in self._sources:
            homes = {spec.node_name for spec in source.slices if spec.node_name}
            for home in homes:
                self._by_node[home].append(source)
            if any(not spec.node_name for spec in source.slices):
                self._everywhere.append(source)
        self._pools: dict[str, tuple[Pool, ...]] = {}

    def pools(self, node: core.Node) -> tuple[Pool, ...]:
        """What a node can use, by driver and pool name."""
        known = self._pools.get(node.name)
        if known is None:
            known = self._pools[node.name] = tuple(self._of(node))
        return known

    def has_shared(self, node: core.Node) -> bool:
        """Whether some of what the node can use, others can use as well."""
        return any(not offer.slice.node_name for pool in self.pools(node) for offer in pool.offers)

    @cached_property
    def homes(self) -> Mapping[DeviceId, str]:
        """The node of each device that is local to one; it is absent for all others."""
        return {
            DeviceId(source.driver, source.name, device.name): spec.node_name
            for source in self._sources
            for spec in source.slices
            if spec.node_name
            for device in spec.devices
        }

    def _of(self, node: core.Node) -> Iterator[Pool]:
        sources = {(source.driver, source.name): source for source in self._everywhere}
        sources |= {(source.driver, source.name): source for source in self._by_node.get(node.name, ())}
        for _, source in sorted(sources.items()):
            reached = [spec for spec in source.slices if _reaches(spec, node)]
            if reached:
                offers = tuple(
                    Offer(DeviceId(source.driver, source.name, device.name), device, spec)
                    for spec in reached
                    for device in spec.devices
                    if not device.consumes_counters
                )
                yield Pool(source.driver, source.name, offers, source.incomplete, source.invalid)


def _sources(slices: Iterable[core.ResourceSlice]) -> Iterator[_Source]:
    grouped: defaultdict[tuple[str, str], list[core.ResourceSlice]] = defaultdict(list)
    for each in slices:
        grouped[each.spec.driver, each.spec.pool.name].append(each)
    for (driver, name), members in sorted(grouped.items()):
        newest = max(each.spec.pool.generation for each in members)
        present = sorted((each for each in members if each.spec.pool.generation == newest), key=lambda each: each.name)
        specs = tuple(each.spec for each in present)
        incomplete = len(specs) < specs[0].pool.resource_slice_count
        yield _Source(driver, name, specs, incomplete, _duplicate(driver, name, specs))


def _duplicate(driver: str, name: str, specs: Iterable[core.ResourceSliceSpec]) -> str:
    seen: set[str] = set()
    for spec in specs:
        for device in spec.devices:
            if device.name in seen:
                return f"pool {driver}/{name} is invalid: duplicate device name {device.name}"
            seen.add(device.name)
    return ""


def _reaches(spec: core.ResourceSliceSpec, node: core.Node) -> bool:
    if spec.node_name:
        return spec.node_name == node.name
    if spec.all_nodes:
        return True
    return spec.node_selector is not None and selectors.matches_node_selector(spec.node_selector, node)
