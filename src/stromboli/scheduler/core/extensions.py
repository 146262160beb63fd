"""What plugins send along with a bind: annotations for the pod, locks on its node, volumes and devices for its claims
(spec 04 section 19, 06 sections 4.4, 17.9 and 17.10).

Annotations travel in the Binding, so that the pod has them exactly when it has its node: there is nothing to clean up
after a refused bind. The mirror holds them as an assumption from the moment a cycle commits the bind.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stromboli.api import core


class NodeLock(msgspec.Struct, frozen=True, gc=False):
    """A lock that is held on the node while the pod is bound."""

    key: str
    """Key of the node annotation that is the lock."""
    failure: str
    """Begins the message when the lock cannot be had."""
    handed_over: bool = True
    """After a bind the node's device plugin gives the lock back; otherwise the scheduler does."""


class VolumeGrant(msgspec.Struct, frozen=True, gc=False):
    """What a delayed volume claim gets on the node: an existing volume, or (None) one that is to be provisioned."""

    claim: str
    """Name of the claim, in the pod's namespace."""
    uid: str
    volume: str | None = None


class DeviceGrant(msgspec.Struct, frozen=True, gc=False):
    """A device claim that is to be reserved for the pod, with its allocation when nobody has written it yet."""

    claim: str
    """Name of the claim, in the pod's namespace."""
    uid: str
    allocation: core.DeviceAllocation | None = None


class BindExtension(msgspec.Struct, frozen=True, gc=False):
    """What one bind needs apart from a node."""

    annotations: dict[str, str] = {}
    locks: tuple[NodeLock, ...] = ()
    volumes: tuple[VolumeGrant, ...] = ()
    devices: tuple[DeviceGrant, ...] = ()


def merged(extensions: Iterable[BindExtension | None]) -> BindExtension | None:
    """Several plugins' extensions of one bind together; None when there is nothing."""
    given = [extension for extension in extensions if extension is not None]
    if len(given) < 2:
        return given[0] if given else None
    annotations = {key: value for extension in given for key, value in extension.annotations.items()}
    return BindExtension(
        annotations,
        tuple(lock for extension in given for lock in extension.locks),
        tuple(grant for extension in given for grant in extension.volumes),
        tuple(grant for extension in given for grant in extension.devices),
    )
