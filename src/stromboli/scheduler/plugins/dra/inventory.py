"""The devices that drivers publish, and which of them a node can use (spec 06 section 17.10).

A pool is all slices of one driver and pool name of the newest generation. Pools with slices missing or with two devices
of one name cannot be picked from. Devices that need a feature that is off are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from stromboli.api import selectors
from stromboli.scheduler.plugins.dra.features import Features
from stromboli.scheduler.plugins.dra.sharing import amount_of
from stromboli.scheduler.plugins.dra.tainting import TaintRules, Taints
from stromboli.scheduler.plugins.dra.taking import CounterId, DeviceId, Draw, Draws

if TYPE_CHECKING:
    from stromboli.api import core

Place: TypeAlias = "core.ResourceSliceSpec | core.Device"
"""What says from which nodes a device can be used."""
NO_RULES = TaintRules((), lambda _: None)


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A device, with what says from where it can be used."""

    id: DeviceId
    device: core.Device
    place: Place
    shared: bool = False
    """Whether several claims can have it at once."""
    draws: tuple[Draw, ...] = ()
    taints: Taints = ()
    """Those that keep away requests that do not tolerate them."""


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

    def devices(self) -> Iterator[tuple[DeviceId, core.Device, Place, int]]:
        """Every device with its place and the number of its slice."""
        for index, spec in enumerate(self.slices):
            for device in spec.devices:
                place = device if spec.per_device_node_selection else spec
                yield DeviceId(self.driver, self.name, device.name), device, place, index

    def places(self) -> Iterator[Place]:
        """Everything that says from where something of the pool can be used."""
        for spec in self.slices:
            yield from spec.devices if spec.per_device_node_selection else (spec,)

    @property
    def homes(self) -> set[str]:
        """Nodes of its devices; empty for those that are not of one node alone."""
        return {place.node_name for place in self.places()}


class Inventory:
    """All pools, and per node what it can use of them."""

    def __init__(
        self,
        slices: Iterable[core.ResourceSlice],
        features: Features = Features(),  # noqa: B008 - immutable
        rules: TaintRules = NO_RULES,
    ) -> None:
        self._features = features
        self._rules = rules
        known = (each for each in slices if features.partitions or not each.spec.per_device_node_selection)
        self._sources = list(_sources(known))
        self._everywhere: list[_Source] = []
        self._by_node: defaultdict[str, list[_Source]] = defaultdict(list)
        for source in self._sources:
            for home in source.homes:
                (self._by_node[home] if home else self._everywhere).append(source)
        self._pools: dict[str, tuple[Pool, ...]] = {}

    def pools(self, node: core.Node) -> tuple[Pool, ...]:
        """What a node can use, by driver and pool name."""
        known = self._pools.get(node.name)
        if known is None:
            known = self._pools[node.name] = tuple(self._of(node))
        return known

    @cached_property
    def homes(self) -> Mapping[DeviceId, str]:
        """The node of each device about which nobody else cares: local to one, as all that it shares counters with."""
        return {
            id_: place.node_name
            for source in self._sources
            for alone in [len(source.homes) == 1]
            for id_, _, place, _ in source.devices()
            if place.node_name and (alone or id_ not in self.draws)
        }

    @cached_property
    def draws(self) -> Draws:
        """What devices take of counters that they share."""
        if not self._features.partitions:
            return {}
        return {
            id_: tuple(_draws(source, device, index))
            for source in self._sources
            for id_, device, _, index in source.devices()
            if device.consumes_counters
        }

    def _of(self, node: core.Node) -> Iterator[Pool]:
        sources = {(source.driver, source.name): source for source in self._everywhere}
        sources |= {(source.driver, source.name): source for source in self._by_node.get(node.name, ())}
        for _, source in sorted(sources.items()):
            if any(_reaches(place, node) for place in source.places()):
                offers = tuple(
                    self._offer(id_, device, place)
                    for id_, device, place, _ in source.devices()
                    if _reaches(place, node) and (self._features.partitions or not device.consumes_counters)
                )
                yield Pool(source.driver, source.name, offers, source.incomplete, source.invalid)

    def _offer(self, id_: DeviceId, device: core.Device, place: Place) -> Offer:
        return Offer(
            id_,
            device,
            place,
            shared=self._features.shares and device.allow_multiple_allocations,
            draws=self.draws.get(id_, ()),
            taints=self._rules.taints(id_, device) if self._features.taints else (),
        )


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


def _draws(source: _Source, device: core.Device, index: int) -> Iterator[Draw]:
    """A counter set is one of the device's own slice, or of another slice of the pool; unknown ones hold nothing."""
    for consumed in device.consumes_counters:
        at, limits = _counter_set(source, consumed.counter_set, index)
        for name, counter in consumed.counters.items():
            limit = limits.get(name)
            key = CounterId(source.driver, source.name, at, consumed.counter_set, name)
            yield Draw(key, amount_of(counter.value), Fraction(0) if limit is None else amount_of(limit.value))


def _counter_set(source: _Source, name: str, index: int) -> tuple[int, Mapping[str, core.Counter]]:
    order = [index, *(at for at in range(len(source.slices)) if at != index)]
    for at in order:
        for counters in source.slices[at].shared_counters:
            if counters.name == name:
                return at, counters.counters
    return index, {}


def _reaches(place: Place, node: core.Node) -> bool:
    if place.node_name:
        return place.node_name == node.name
    if place.all_nodes:
        return True
    return place.node_selector is not None and selectors.matches_node_selector(place.node_selector, node)
