"""What claims ask for, read once: requests with their alternatives, classes looked up, constraints (spec 06 section
17.10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from stromboli.scheduler.plugins.dra.features import Features

if TYPE_CHECKING:
    from stromboli.api import core

MOST_RESULTS = 32
"""Devices that one claim can be given."""

Classes: TypeAlias = "Callable[[str], core.DeviceClass | None]"


class BadClaim(Exception):
    """A claim that cannot be served as it is written, whatever devices there are; the text says why."""


@dataclass(frozen=True, slots=True)
class Need:
    """One alternative of one request."""

    name: str
    """``request`` or ``request/alternative``."""
    request: str
    class_: core.DeviceClass
    selectors: tuple[core.DeviceSelector, ...]
    count: int
    """0: all that match, at least one."""
    admin: bool
    capacity: core.ResourceList
    tolerations: tuple[core.Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimNeeds:
    """A claim that is to be allocated."""

    claim: core.ResourceClaim
    requests: tuple[tuple[Need, ...], ...]
    """Per request its alternatives, best first."""

    @property
    def constraints(self) -> tuple[core.DeviceConstraint, ...]:
        """What devices must have in common."""
        return self.claim.spec.devices.constraints


def missing_class(claim: core.ResourceClaim, classes: Classes) -> str | None:
    """Why a claim cannot be tried yet: a request of a class that does not exist, or of a kind that is not known."""
    for request in claim.spec.devices.requests:
        alternatives = list(_alternatives(request))
        if not alternatives:
            return f"request {request.name}: unsupported request type"
        for name, wanted in alternatives:
            if classes(wanted.device_class_name) is None:
                return f"request {name}: device class {wanted.device_class_name} does not exist"
    return None


def needs_of(claim: core.ResourceClaim, classes: Classes, features: Features = Features()) -> ClaimNeeds:  # noqa: B008
    """What a claim asks for. Raises BadClaim."""
    key = f"{claim.namespace}/{claim.name}"
    for request in claim.spec.devices.requests:
        _check_features(key, request, features)
    for index, constraint in enumerate(claim.spec.devices.constraints):
        if constraint.match_attribute is None and constraint.distinct_attribute is None:
            raise BadClaim(f"claim {key}, constraint #{index}: empty constraint (unsupported constraint type?)")
    requests = tuple(tuple(_needs(key, request, classes)) for request in claim.spec.devices.requests)
    least = sum(min(max(need.count, 1) for need in alternatives) for alternatives in requests)
    if least > MOST_RESULTS:
        raise BadClaim(f"claim {key}: number of requested devices {least} exceeds the claim limit of {MOST_RESULTS}")
    return ClaimNeeds(claim, requests)


def _check_features(key: str, request: core.DeviceRequest, features: Features) -> None:
    """Raises BadClaim when a request needs what is off: to serve it otherwise would not be what it asks for."""
    if request.first_available and not features.alternatives:
        raise BadClaim(f"claim {key}, request {request.name}: has alternatives, and DRAPrioritizedList is off")
    if request.exactly is not None and request.exactly.admin_access and not features.admin_access:
        raise BadClaim(f"claim {key}, request {request.name}: wants admin access, and DRAAdminAccess is off")


Wanted: TypeAlias = "core.ExactDeviceRequest | core.DeviceSubRequest"


def _alternatives(request: core.DeviceRequest) -> Iterator[tuple[str, Wanted]]:
    if request.exactly is not None:
        yield request.name, request.exactly
    for sub in request.first_available:
        yield f"{request.name}/{sub.name}", sub


def _needs(key: str, request: core.DeviceRequest, classes: Classes) -> Iterator[Need]:
    alternatives: Sequence[tuple[str, Wanted]] = list(_alternatives(request))
    if not alternatives:
        raise BadClaim(f"claim {key}, request {request.name}: unsupported request type")
    for name, wanted in alternatives:
        class_ = classes(wanted.device_class_name)
        if class_ is None:
            raise BadClaim(f"claim {key}, request {name}: could not retrieve device class {wanted.device_class_name}")
        yield Need(
            name=name,
            request=request.name,
            class_=class_,
            selectors=wanted.selectors,
            count=_count(key, name, wanted),
            admin=request.exactly is not None and request.exactly.admin_access,
            capacity=wanted.capacity.requests if wanted.capacity is not None else {},
            tolerations=wanted.tolerations,
        )


def _count(key: str, name: str, wanted: Wanted) -> int:
    match wanted.allocation_mode:
        case "" | "ExactCount":
            return wanted.count or 1
        case "All":
            return 0
        case other:
            raise BadClaim(f"claim {key}, request {name}: unsupported count mode {other}")
