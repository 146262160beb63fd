"""``nodeinfo.volcano.sh/v1alpha1``: Numatopology (spec 01 section 12)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.api.meta import Resource
from stromboli.api.modelling import Model, Schema


class ResourceInfo(Model):
    """Ids of a resource that can be given out, and how many there are."""

    allocatable: str = ""
    """Ids, as a cpuset."""
    capacity: int = 0
    """Number."""


class CpuInfo(Model):
    """Where a CPU sits; absent members are 0."""

    numa: Annotated[int, Schema(minimum=0)] = 0
    """NUMA node."""
    socket: Annotated[int, Schema(minimum=0)] = 0
    """Socket."""
    core: Annotated[int, Schema(minimum=0)] = 0
    """Core."""


class ContainerAllocation(Model):
    """What a container was given."""

    name: str = ""
    """Name of the container."""
    allocations: dict[str, str] = {}
    """Resource to ids or amount."""


class PodAllocation(Model):
    """What a pod was given."""

    uid: str = ""
    """UID of the pod."""
    name: str = ""
    """Name of the pod."""
    namespace: str = ""
    """Namespace of the pod."""
    container_allocations: list[ContainerAllocation] = []
    """By container."""


class NumatopologySpec(Model):
    """NUMA layout of a node."""

    policies: dict[str, str] = {}
    """Policies of the kubelet."""
    res_reserved: dict[str, str] = {}
    """What the kubelet reserves."""
    numares: dict[str, ResourceInfo] = {}
    """Resources and their ids."""
    cpu_detail: dict[str, CpuInfo] = {}
    """Place of each CPU, by its id."""
    pod_allocations: list[PodAllocation] = []
    """What pods were given; not read by the scheduler."""


class Numatopology(Resource):
    """NUMA layout of the node of the same name."""

    KIND: ClassVar[Kind] = kinds.NUMATOPOLOGIES

    spec: NumatopologySpec = Field(default_factory=NumatopologySpec)
