"""Dynamic resource allocation: device claims as the scheduler counts them (spec 04 section 9.4)."""

from __future__ import annotations

from stromboli.api.core.meta import Object, ObjectMeta, ResourceList, Struct


class DeviceCapacityRequests(Struct, frozen=True, kw_only=True):
    """Consumable capacity asked of each device."""

    requests: ResourceList = {}


class ExactDeviceRequest(Struct, frozen=True, kw_only=True):
    """A request for ``count`` devices of one class; a count of 0 means 1."""

    device_class_name: str = ""
    allocation_mode: str = ""
    count: int = 0
    capacity: DeviceCapacityRequests | None = None


class DeviceRequest(Struct, frozen=True, kw_only=True):
    """A named request, exact or a list of alternatives of which only the presence is read."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None


class DeviceClaim(Struct, frozen=True, kw_only=True):
    """The devices part of a claim."""

    requests: tuple[DeviceRequest, ...] = ()


class ResourceClaimSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a claim."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Struct, frozen=True, kw_only=True):
    """One device given to a request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    consumed_capacity: ResourceList = {}


class DeviceResults(Struct, frozen=True, kw_only=True):
    """The devices given."""

    results: tuple[AllocatedDevice, ...] = ()


class DeviceAllocation(Struct, frozen=True, kw_only=True):
    """An allocation of a claim."""

    devices: DeviceResults = DeviceResults()


class ResourceClaimConsumer(Struct, frozen=True, kw_only=True):
    """A consumer a claim is reserved for."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""


class ResourceClaimStatus(Struct, frozen=True, kw_only=True):
    """``status`` of a claim."""

    allocation: DeviceAllocation | None = None
    reserved_for: tuple[ResourceClaimConsumer, ...] = ()


class ResourceClaim(Object, frozen=True, kw_only=True):
    """A device claim."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Struct, frozen=True, kw_only=True):
    """What claims made from a template look like."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object, frozen=True, kw_only=True):
    """A template of claims."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClass(Object, frozen=True, kw_only=True):
    """A device class; only its name is read."""
