"""What a what-if may set: values that the API server and admission would take as well (spec 01, 07 sections 12 to 14).

Schemas of custom kinds are those of their definitions. Of the kinds of Kubernetes only what scheduling would stumble
over is looked at: amounts, phases, and names of objects that must be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from stromboli.api import core, kinds, names, quantities
from stromboli.api.kinds import Kind
from stromboli.api.meta import Resource
from stromboli.api.nodeinfo import Numatopology
from stromboli.api.resourcenames import is_extended
from stromboli.api.scheduling import PodGroup, Queue
from stromboli.api.schemas import schema_of
from stromboli.api.topology import HyperNode
from stromboli.cli.rehearsing.snapshots import STRUCTS, Snapshot
from stromboli.kube.json import JsonObject
from stromboli.localcluster.schemas.structural import from_openapi
from stromboli.localcluster.schemas.structure import Schema
from stromboli.localcluster.schemas.validating import validate

AMOUNTS = frozenset({"allocatable", "capacity", "capability", "deserved", "resource", "requests", "minResources"})
"""Fields that hold amounts by resource."""
IDENTITY = frozenset({"name", "namespace", "uid", "resourceVersion", "generateName", "generation"})
"""Of metadata: who the object is."""
POD_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")

_MODELS: Mapping[Kind, type[Resource]] = {
    kinds.QUEUES: Queue,
    kinds.POD_GROUPS: PodGroup,
    kinds.HYPER_NODES: HyperNode,
    kinds.NUMATOPOLOGIES: Numatopology,
}
_NAMED: Mapping[tuple[Kind, str], Kind] = {
    (kinds.QUEUES, "spec.parent"): kinds.QUEUES,
    (kinds.POD_GROUPS, "spec.queue"): kinds.QUEUES,
    (kinds.PODS, "spec.nodeName"): kinds.NODES,
}
"""Fields that name an object, and of which kind."""


def field_faults(kind: Kind, document: JsonObject, path: Sequence[str]) -> Iterator[str]:
    """What is wrong with the field at ``path`` of an object, as far as the object alone tells."""
    field = ".".join(path)
    if path[0] == "metadata" and path[1] in IDENTITY:
        yield f"{field} is who the object is, and cannot be set"
        return
    value = _value_at(document, path)
    amounts = {} if value is None else dict(_amounts(path, value))
    unreadable = [name for name, amount in amounts.items() if not quantities.is_quantity(amount)]
    for name in unreadable:
        yield f"{amounts[name]!r} is no quantity of {name}; write for example 500m, 2 or 4Gi"
    if unreadable:
        return
    yield from _amount_faults(field, amounts)
    if (kind, field) == (kinds.PODS, "status.phase") and value is not None and value not in POD_PHASES:
        yield f"{field}: {value!r} is no phase of a pod; choose one of {', '.join(POD_PHASES)}"
    schema = schema_for(kind)
    if schema is not None:
        yield from (str(cause) for cause in validate(schema, document) if _is_about(cause.field, field))


def object_faults(kind: Kind, obj: core.Object, path: Sequence[str], snapshot: Snapshot) -> Iterator[str]:
    """What is wrong with the object now that the field at ``path`` is set, seen with all others."""
    wanted = _NAMED.get((kind, ".".join(path)))
    name = _value_at(core.to_builtins(obj), path) if wanted else ""
    if wanted and name and not _is_there(wanted, name, snapshot):
        yield f"{'.'.join(path)}: the snapshot has no {wanted.kind} {name!r}"
    if isinstance(obj, core.Queue):
        if tuple(path) == ("spec", "parent"):
            yield from _parent_faults(obj, snapshot)
        elif AMOUNTS & set(path):
            yield from _order_faults(obj.spec)


def _is_there(kind: Kind, name: object, snapshot: Snapshot) -> bool:
    """Whether the snapshot has the object; the queue ``root`` need not be there to be a parent."""
    known = {one.name for one in snapshot.of(STRUCTS[kind])}
    return name in known or (kind is kinds.QUEUES and name == names.ROOT_QUEUE)


@cache
def schema_for(kind: Kind) -> Schema | None:
    """The schema of a custom kind; None for a kind of Kubernetes."""
    model = _MODELS.get(kind)
    return from_openapi(schema_of(model, descriptions=False)) if model else None


def _value_at(document: Mapping[str, object], path: Sequence[str]) -> object:
    value: object = document
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _is_about(place: str, field: str) -> bool:
    """Whether a fault at ``place`` is one of the field: an object of an old snapshot may have others."""
    return place == field or place.startswith((f"{field}.", f"{field}["))


# -- amounts -----------------------------------------------------------------------------------------------------------


def _amounts(path: Sequence[str], value: object) -> Iterator[tuple[str, object]]:
    """Amounts by resource among what is set: one, a list of them, or lists within."""
    if len(path) > 1 and path[-2] in AMOUNTS:
        yield path[-1], value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from [(key, inner)] if path[-1] in AMOUNTS else _amounts([*path, key], inner)


def _amount_faults(field: str, amounts: Mapping[str, object]) -> Iterator[str]:
    for name, amount in amounts.items():
        assert isinstance(amount, str | int | float)
        if quantities.parse(amount) < 0:
            yield f"{field}: {amount} of {name}: must be greater than or equal to 0"
        elif (name == names.PODS or is_extended(name)) and quantities.milli(amount) % 1000:
            yield f"{field}: {amount} of {name}: must be an integer"


def _order_faults(spec: core.QueueSpec) -> Iterator[str]:
    """Guarantee ≤ deserved ≤ capability, resource by resource."""
    for name, guaranteed in sorted(spec.guarantee.resource.items()):
        if name not in spec.deserved:
            yield f"spec.deserved.{name} is not set, and must be at least spec.guarantee.resource.{name}={guaranteed}"
    for lower, upper, low, high in (
        ("guarantee.resource", "deserved", spec.guarantee.resource, spec.deserved),
        ("deserved", "capability", spec.deserved, spec.capability),
    ):
        for name in sorted(low.keys() & high.keys()):
            readable = quantities.is_quantity(low[name]) and quantities.is_quantity(high[name])
            if readable and quantities.parse(low[name]) > quantities.parse(high[name]):
                yield f"spec.{lower}.{name}={low[name]} must be at most spec.{upper}.{name}={high[name]}"


# -- the tree of queues ------------------------------------------------------------------------------------------------


def _parent_faults(queue: core.Queue, snapshot: Snapshot) -> Iterator[str]:
    if queue.name == names.ROOT_QUEUE and queue.spec.parent:
        yield f"spec.parent: {names.ROOT_QUEUE} is above all queues"
        return
    queues = {one.name: one for one in snapshot.of(core.Queue)}
    above, seen = queue.spec.parent, {queue.name}
    while above in queues and above not in seen:
        seen.add(above)
        above = queues[above].spec.parent
    if above == queue.name:
        yield f"spec.parent: queue {queue.name} would stand below itself"
