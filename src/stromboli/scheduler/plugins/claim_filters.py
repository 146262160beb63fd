"""The part of ``predicates`` that is about claims: CSI volume limits, volume zones, volume binding and dynamic
resources (spec 06 section 16.2), as filters and as books.

Volumes are promised before devices and given back after them. Books are kept only in clusters that have such objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from stromboli.api import core
from stromboli.scheduler.core import extensions, policy
from stromboli.scheduler.core.plugin import Arguments, Filter, PlacementRefused, Reach, Score
from stromboli.scheduler.plugins.dra.claiming import DeviceClaims, steps_of
from stromboli.scheduler.plugins.volumes.claiming import VolumeClaims
from stromboli.scheduler.plugins.volumes.limits import VolumeLimits
from stromboli.scheduler.plugins.volumes.scoring import GATE, StorageScore, shape_of
from stromboli.scheduler.plugins.volumes.zones import VolumeZones

if TYPE_CHECKING:
    from stromboli.scheduler.core.extensions import BindExtension
    from stromboli.scheduler.core.records import Node, Task
    from stromboli.scheduler.core.view import View
    from stromboli.scheduler.plugins.selecting import NodeLabels

DEVICES = "DynamicResourceAllocation"
WEIGHT = "volumebinding.weight"
TIME_LIMIT = "dynamicresources.filterTimeoutSeconds"


class _Books(Protocol):
    def placed(self, task: Task, node: Node) -> None: ...

    def removed(self, task: Task, node: Node) -> None: ...


class ClaimFilters:
    """What the arguments leave on. ``is_on`` says so by the name of a filter."""

    def __init__(self, view: View, labels: NodeLabels, arguments: Arguments, is_on: Callable[[str], bool]) -> None:
        self.local: list[Filter] = []
        """Filters that look at nothing but the node."""
        self.cluster: list[Filter] = []
        """Filters whose answer about one node depends on what is placed elsewhere."""
        self.scores: list[Score] = []
        self._books: list[_Books] = []
        self._volumes: VolumeClaims | None = None
        self._devices: DeviceClaims | None = None
        objects = view.objects
        if is_on("NodeVolumeLimits"):
            self._add_limits(VolumeLimits(view), keeps_books=bool(objects.all(core.CSINode)))
        if is_on("VolumeZone"):
            self._add_zones(VolumeZones(objects, labels))
        if is_on("VolumeBinding"):
            self._add_volumes(VolumeClaims(view, labels), keeps_books=bool(objects.all(core.PersistentVolumeClaim)))
            if view.feature(GATE, False):
                self._add_score(view, arguments)
        gate = view.feature(DEVICES, True)
        if gate and policy.boolean(arguments, f"predicate.{DEVICES}Enable", gate):
            devices = DeviceClaims(view, labels, steps_of(arguments.get(TIME_LIMIT)))
            self._add_devices(devices, keeps_books=bool(objects.all(core.ResourceClaim)))

    def _add_limits(self, limits: VolumeLimits, *, keeps_books: bool) -> None:
        self.local.append(Filter("volume limits", limits.reasons, limits.refuse, concerns=limits.concerns))
        if keeps_books:
            self._books.append(limits)

    def _add_zones(self, zones: VolumeZones) -> None:
        found = Filter("volume zone", zones.reasons, zones.refuse, reach=Reach.NODE, concerns=zones.concerns)
        self.local.append(found)

    def _add_volumes(self, volumes: VolumeClaims, *, keeps_books: bool) -> None:
        self._volumes = volumes
        self.local.append(
            Filter(
                "volume binding",
                volumes.bound_reasons,
                volumes.refuse_bound,
                reach=Reach.NODE,
                concerns=volumes.concerns,
                alone=True,
            )
        )
        self.cluster.append(
            Filter(
                "volumes to be bound",
                volumes.delayed_reasons,
                volumes.refuse_delayed,
                reach=Reach.CLUSTER,
                concerns=volumes.waits,
                alone=True,
            )
        )
        if keeps_books:
            self._books.append(volumes)

    def _add_score(self, view: View, arguments: Arguments) -> None:
        assert self._volumes is not None
        weight = policy.integer(arguments, WEIGHT, 1)
        score = StorageScore(self._volumes, view.objects, shape_of(arguments), weight)
        self.scores.append(Score("volume binding", score.rate, reach=Reach.CLUSTER, concerns=self._volumes.waits))

    def _add_devices(self, devices: DeviceClaims, *, keeps_books: bool) -> None:
        self._devices = devices
        self.cluster.append(
            Filter(
                "dynamic resources",
                devices.reasons,
                devices.refuse,
                reach=Reach.CLUSTER,
                concerns=devices.concerns,
                alone=True,
            )
        )
        if keeps_books:
            self._books.append(devices)

    @property
    def keeps_books(self) -> bool:
        """Whether placements matter here at all."""
        return bool(self._books)

    def prepare(self, task: Task) -> str | None:
        """What is wrong with the pod's claims, whatever the node."""
        for name, claims in (("VolumeBinding", self._volumes), ("DynamicResources", self._devices)):
            problem = claims.prepare(task) if claims is not None else None
            if problem is not None:
                return f"plugin {name} pre-predicates failed {problem}"
        return None

    def placed(self, task: Task, node: Node) -> None:
        """Notes a placement. Raises PlacementRefused and changes nothing when claims cannot be served."""
        for told, books in enumerate(self._books):
            try:
                books.placed(task, node)
            except PlacementRefused:
                for earlier in reversed(self._books[:told]):
                    earlier.removed(task, node)
                raise

    def removed(self, task: Task, node: Node) -> None:
        """Notes that a placement was undone, or the task evicted."""
        for books in reversed(self._books):
            books.removed(task, node)

    def extension(self, task: Task, _node: Node) -> BindExtension | None:
        """What the shell is to prepare before the task is bound."""
        given = (claims.extension(task) for claims in (self._volumes, self._devices) if claims is not None)
        return extensions.merged(given)
