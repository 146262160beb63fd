"""Dynamic resource allocation: claims, classes and the devices that drivers publish (spec 04 section 9.4, 06 section
17.10).
"""

from __future__ import annotations

import msgspec

from stromboli.api.core.affinities import NodeSelector, Taint, Toleration
from stromboli.api.core.meta import Object, ObjectMeta, ResourceList, Struct


class CELDeviceSelector(Struct, frozen=True, kw_only=True):
    """An expression over ``device``."""

    expression: str = ""


class DeviceSelector(Struct, frozen=True, kw_only=True):
    """A condition on devices; None stands for a kind of selector that is not known here."""

    cel: CELDeviceSelector | None = None


class DeviceCapacityRequests(Struct, frozen=True, kw_only=True):
    """Consumable capacity asked of each device."""

    requests: ResourceList = {}


class ExactDeviceRequest(Struct, frozen=True, kw_only=True):
    """A request for ``count`` devices of one class; a count of 0 means 1."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool = False
    capacity: DeviceCapacityRequests | None = None
    tolerations: tuple[Toleration, ...] = ()


class DeviceSubRequest(Struct, frozen=True, kw_only=True):
    """One of several alternatives."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    capacity: DeviceCapacityRequests | None = None
    tolerations: tuple[Toleration, ...] = ()


class DeviceRequest(Struct, frozen=True, kw_only=True):
    """A named request, exact or a list of alternatives in order of preference."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Struct, frozen=True, kw_only=True):
    """What the devices of some requests (none named: of all) must have in common or must not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(Struct, frozen=True, kw_only=True):
    """Parameters that only a driver understands."""

    driver: str = ""
    parameters: object = None


class DeviceConfiguration(Struct, frozen=True, kw_only=True):
    """Configuration of a class, or of a claim for some of its requests (none named: for all)."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Struct, frozen=True, kw_only=True):
    """The devices part of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class ResourceClaimSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a claim."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Struct, frozen=True, kw_only=True):
    """One device given to a request. With a share it is not given as a whole but with ``consumed_capacity``."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: ResourceList = {}
    tolerations: tuple[Toleration, ...] = ()


class AllocatedConfiguration(Struct, frozen=True, kw_only=True):
    """Configuration that goes along with devices; ``source`` is ``FromClass`` or ``FromClaim``."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceResults(Struct, frozen=True, kw_only=True):
    """The devices given, and how they are to be configured."""

    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[AllocatedConfiguration, ...] = ()


class DeviceAllocation(Struct, frozen=True, kw_only=True):
    """An allocation of a claim, and the nodes where it can be used (None: everywhere)."""

    devices: DeviceResults = DeviceResults()
    node_selector: NodeSelector | None = None


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


class DeviceClassSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a device class."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class DeviceClass(Object, frozen=True, kw_only=True):
    """A device class: what all its devices have in common."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceAttribute(Struct, frozen=True, kw_only=True):
    """A value of one of four types."""

    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class CapacityRange(Struct, frozen=True, kw_only=True):
    """Amounts from ``min`` to ``max`` in steps."""

    min: str | int | float | None = None
    max: str | int | float | None = None
    step: str | int | float | None = None


class CapacityRequestPolicy(Struct, frozen=True, kw_only=True):
    """What may be consumed of a capacity, and what is when nothing is asked for."""

    default: str | int | float | None = None
    valid_values: tuple[str | int | float, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Struct, frozen=True, kw_only=True):
    """An amount that a device has."""

    value: str | int | float = 0
    request_policy: CapacityRequestPolicy | None = None


class Counter(Struct, frozen=True, kw_only=True):
    """An amount that devices share, or that one of them takes of it."""

    value: str | int | float = 0


class CounterSet(Struct, frozen=True, kw_only=True):
    """Counters that several devices share."""

    name: str = ""
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(Struct, frozen=True, kw_only=True):
    """What a device takes of counters that it shares with others."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}


class Device(Struct, frozen=True, kw_only=True):
    """A device as its driver publishes it. Attribute and capacity names without a domain are in the driver's.

    Where it can be used is the slice's affair, unless the slice leaves that to each device.
    """

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[Taint, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(Struct, frozen=True, kw_only=True):
    """The pool that a slice is a part of."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a slice: devices, and from which nodes they can be used."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Object, frozen=True, kw_only=True):
    """A part of a pool of devices."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Struct, frozen=True, kw_only=True):
    """Devices that fulfil everything that is given; with nothing given: all devices."""

    device_class_name: str | None = None
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    selectors: tuple[DeviceSelector, ...] = ()


class DeviceTaintRuleSpec(Struct, frozen=True, kw_only=True):
    """``spec`` of a rule; without a selector it is about no device."""

    device_selector: DeviceTaintSelector | None = None
    taint: Taint = Taint()


class DeviceTaintRule(Object, frozen=True, kw_only=True):
    """A taint that an administrator puts on devices."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
