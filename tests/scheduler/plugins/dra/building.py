"""Devices, slices, classes and claims in a few words."""

from __future__ import annotations

from stromboli.api import core
from stromboli.api.core import ObjectMeta
from stromboli.scheduler.plugins.dra.features import Features
from stromboli.scheduler.plugins.dra.inventory import Inventory, Pool
from stromboli.scheduler.plugins.dra.requests import ClaimNeeds, needs_of
from stromboli.scheduler.plugins.dra.taking import DeviceId, Draws, Taken

DRIVER = "gpu.example.com"

Value = int | bool | str


def attribute(value: Value) -> core.DeviceAttribute:
    """An attribute; text that begins with ``v`` and a digit is a version."""
    if isinstance(value, bool):
        return core.DeviceAttribute(bool_value=value)
    if isinstance(value, int):
        return core.DeviceAttribute(int_value=value)
    if value[:1] == "v" and value[1:2].isdigit():
        return core.DeviceAttribute(version=value[1:])
    return core.DeviceAttribute(string=value)


def device(name: str, *, capacity: dict[str, str] | None = None, **attributes: Value) -> core.Device:
    """A device with attributes of its driver."""
    return core.Device(
        name=name,
        attributes={key: attribute(value) for key, value in attributes.items()},
        capacity={key: core.DeviceCapacity(value=value) for key, value in (capacity or {}).items()},
    )


def devices(count: int, **attributes: Value) -> list[core.Device]:
    """``gpu-0`` and so on, all alike."""
    return [device(f"gpu-{index}", capacity=None, **attributes) for index in range(count)]


def resource_slice(
    name: str,
    *offered: core.Device,
    node: str = "",
    pool: str = "",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    zone: str = "",
) -> core.ResourceSlice:
    """A slice of a node, of all nodes of a zone, or (neither) of all nodes."""
    expression = core.Requirement(key="zone", operator="In", values=(zone,))
    term = core.NodeSelectorTerm(match_expressions=(expression,))
    return core.ResourceSlice(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}"),
        spec=core.ResourceSliceSpec(
            driver=driver,
            pool=core.ResourcePool(name=pool or node or name, generation=generation, resource_slice_count=count),
            node_name=node,
            node_selector=core.NodeSelector(node_selector_terms=(term,)) if zone else None,
            all_nodes=not node and not zone,
            devices=offered,
        ),
    )


def cel(*expressions: str) -> tuple[core.DeviceSelector, ...]:
    """Selectors."""
    return tuple(core.DeviceSelector(cel=core.CELDeviceSelector(expression=each)) for each in expressions)


def device_class(name: str = "gpu", *expressions: str, parameters: object = None) -> core.DeviceClass:
    """A class of devices that satisfy all expressions."""
    opaque = core.OpaqueDeviceConfiguration(driver=DRIVER, parameters=parameters)
    config = (core.DeviceConfiguration(opaque=opaque),) if parameters is not None else ()
    return core.DeviceClass(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}"),
        spec=core.DeviceClassSpec(selectors=cel(*expressions), config=config),
    )


def request(
    name: str = "r",
    count: int = 1,
    *expressions: str,
    class_: str = "gpu",
    mode: str = "",
    admin: bool = False,
    capacity: dict[str, str] | None = None,
) -> core.DeviceRequest:
    """An exact request."""
    wanted = core.DeviceCapacityRequests(requests=dict(capacity)) if capacity else None
    exactly = core.ExactDeviceRequest(
        device_class_name=class_,
        selectors=cel(*expressions),
        count=count,
        allocation_mode=mode,
        admin_access=admin,
        capacity=wanted,
    )
    return core.DeviceRequest(name=name, exactly=exactly)


def either(name: str, *alternatives: tuple[str, int, str]) -> core.DeviceRequest:
    """A request with alternatives of (name, count, class)."""
    subs = [
        core.DeviceSubRequest(name=sub, count=count, device_class_name=class_) for sub, count, class_ in alternatives
    ]
    return core.DeviceRequest(name=name, first_available=tuple(subs))


def claim(
    name: str = "claim",
    *requests: core.DeviceRequest,
    constraints: tuple[core.DeviceConstraint, ...] = (),
    config: tuple[core.DeviceConfiguration, ...] = (),
    owner: str = "",
    allocation: core.DeviceAllocation | None = None,
    reserved: tuple[str, ...] = (),
) -> core.ResourceClaim:
    """A claim; without requests it asks for one device of class ``gpu``."""
    owners = (core.OwnerReference(kind="Pod", name=owner, uid=f"ns-{owner}", controller=True),) if owner else ()
    consumers = tuple(core.ResourceClaimConsumer(resource="pods", name=uid, uid=uid) for uid in reserved)
    return core.ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}", owner_references=owners),
        spec=core.ResourceClaimSpec(
            devices=core.DeviceClaim(requests=requests or (request(),), constraints=constraints, config=config)
        ),
        status=core.ResourceClaimStatus(allocation=allocation, reserved_for=consumers),
    )


def same(attribute_name: str, *requests: str) -> core.DeviceConstraint:
    """Devices must agree in an attribute."""
    return core.DeviceConstraint(requests=requests, match_attribute=attribute_name)


def given(*names: str, pool: str = "n0", node: str = "", admin: bool = False) -> core.DeviceAllocation:
    """An allocation of devices of a pool, usable on one node only or everywhere."""
    results = tuple(
        core.AllocatedDevice(request="r", driver=DRIVER, pool=pool, device=name, admin_access=admin or None)
        for name in names
    )
    here = core.Requirement(key="metadata.name", operator="In", values=(node,))
    selector = core.NodeSelector(node_selector_terms=(core.NodeSelectorTerm(match_fields=(here,)),))
    return core.DeviceAllocation(devices=core.DeviceResults(results=results), node_selector=selector if node else None)


def needs(*claims: core.ResourceClaim, classes: tuple[core.DeviceClass, ...] = ()) -> list[ClaimNeeds]:
    """What claims ask for; there is a class ``gpu`` of everything unless given otherwise."""
    known = {each.name: each for each in (device_class(), *classes)}
    return [needs_of(each, known.get) for each in claims]


def pools(
    *slices: core.ResourceSlice,
    node: str = "n0",
    zone: str = "",
    features: Features = Features(),  # noqa: B008 - immutable
) -> tuple[Pool, ...]:
    """What a node can use."""
    resource = core.Node(metadata=ObjectMeta(name=node, labels={"zone": zone} if zone else {}))
    return Inventory(slices, features).pools(resource)


def names(allocation: core.DeviceAllocation) -> list[str]:
    """Devices given, as ``request:device``."""
    return [f"{result.request}:{result.device}" for result in allocation.devices.results]


def taken(*device_names: str, pool: str = "n0", draws: Draws | None = None) -> Taken:
    """Devices that somebody else has."""
    books = Taken(draws or {})
    for name in device_names:
        books.take(DeviceId(DRIVER, pool, name))
    return books
