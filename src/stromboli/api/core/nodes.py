"""Nodes."""

from __future__ import annotations

import msgspec

from stromboli.api.core.affinities import Taint
from stromboli.api.core.meta import Object, ResourceList, Struct


class NodeSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a node."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeCondition(Struct, frozen=True, kw_only=True):
    """One condition of a node, such as ``Ready``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_heartbeat_time: str | None = None


class ContainerImage(Struct, frozen=True, kw_only=True):
    """An image present on a node, under all its names."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeAddress(Struct, frozen=True, kw_only=True):
    """An address of a node and its type, such as ``InternalIP``."""

    type: str = ""
    address: str = ""


class NodeStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a node."""

    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()


class Node(Object, frozen=True, kw_only=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
