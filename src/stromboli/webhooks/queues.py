"""Queues: what a new queue is given, and which queues are accepted (spec 07 sections 13 and 14)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Final

from stromboli.api import quantities
from stromboli.api.names import HIERARCHY, HIERARCHY_WEIGHTS
from stromboli.webhooks import amounts, queue_tree
from stromboli.webhooks.context import Context, Operation
from stromboli.webhooks.errors import FieldError, Reason, invalid, sentence, some, unsaid
from stromboli.webhooks.shapes import JsonObject, Queue, ResourceList, read

DEFAULT_QUEUE: Final = "default"
ROOT_QUEUE: Final = "root"
SETTABLE_STATES: Final = ("Open", "Closed")

_FLOAT: Final = re.compile(
    r"[+-]?(\d+(_?\d+)*\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?\d+", re.IGNORECASE
)


def default(obj: JsonObject, context: Context) -> JsonObject:
    """A queue with hierarchy below ``root``, reclaimable and weighing 1 unless it says otherwise."""
    queue, obj = read(Queue, obj), deepcopy(obj)
    hierarchy, weights = _hierarchy(queue)
    if hierarchy and weights and not hierarchy.startswith(ROOT_QUEUE):
        annotations = obj["metadata"]["annotations"]
        annotations |= {HIERARCHY: f"{ROOT_QUEUE}/{hierarchy}", HIERARCHY_WEIGHTS: f"1/{weights}"}
    spec = obj.setdefault("spec", {})
    if queue.spec.reclaimable is None:
        spec["reclaimable"] = True
    if queue.spec.weight == 0:
        spec["weight"] = 1
    return obj


def validate(obj: JsonObject | None, old: JsonObject | None, context: Context) -> list[FieldError]:
    """What is wrong with a queue, its change or its deletion; the message says the first stage that finds anything."""
    if context.operation == Operation.DELETE:
        return _deletion_faults(context)
    queue = read(Queue, obj)
    before = read(Queue, old, "oldObject") if context.operation == Operation.UPDATE else None
    faults: list[FieldError] = []
    for stage in _stages(queue, before, context):
        faults += unsaid(stage) if faults else stage
    return faults


def _stages(queue: Queue, before: Queue | None, context: Context) -> Iterator[list[FieldError]]:
    yield _own_faults(queue, before, context)
    if before is None or before.spec.parent != queue.spec.parent:
        yield queue_tree.parent_faults(queue, context)
    if before is not None and queue.name == ROOT_QUEUE and context.settings.enable_root_queue_protection:
        yield _root_faults(queue, before)
    if queue.name != ROOT_QUEUE and (before is None or _shares_changed(queue, before)):
        yield queue_tree.share_faults(queue, context)


# Own fields


def _own_faults(queue: Queue, before: Queue | None, context: Context) -> list[FieldError]:
    """Texts call the object ``requestBody``; causes have the paths that they have in it."""
    faults = some(_named_faults(queue, before, context))
    return [replace(fault, place=fault.place or fault.field.removeprefix("requestBody.")) for fault in faults]


def _named_faults(queue: Queue, before: Queue | None, context: Context) -> Iterator[FieldError]:
    lists = {
        "capability": queue.spec.capability,
        "deserved": queue.spec.deserved,
        "guarantee.resource": queue.spec.guarantee.resource,
    }
    unreadable = [
        fault for part, resources in lists.items() for fault in amounts.malformed(resources, f"requestBody.spec.{part}")
    ]
    if unreadable:
        yield from unreadable
        return
    for part, resources in lists.items():
        for name, amount in sorted(resources.items()):
            yield from amounts.amount_faults(name, amount, f"requestBody.spec.{part}.{name}")
    yield from _order_faults(queue)
    yield from _state_faults(queue, before)
    yield from _hierarchy_faults(queue, context)


def _order_faults(queue: Queue) -> Iterator[FieldError]:
    """Guarantee ≤ deserved ≤ capability, resource by resource."""
    deserved, capability = queue.spec.deserved, queue.spec.capability
    for name, guaranteed in sorted(queue.spec.guarantee.resource.items()):
        field, floor = f"requestBody.spec.deserved.{name}", f"guarantee[{name}]={quantities.canonical(guaranteed)}"
        if name not in deserved:
            yield invalid(field, "<nil>", f"deserved[{name}] must be >= {floor}")
        elif quantities.parse(deserved[name]) < quantities.parse(guaranteed):
            shown = quantities.canonical(deserved[name])
            yield invalid(field, shown, f"deserved[{name}]={shown} must be >= {floor}")
    for name in sorted(deserved.keys() & capability.keys()):
        if quantities.parse(deserved[name]) > quantities.parse(capability[name]):
            shown, limit = quantities.canonical(deserved[name]), quantities.canonical(capability[name])
            detail = f"deserved[{name}]={shown} must be <= capability[{name}]={limit}"
            yield invalid(f"requestBody.spec.deserved.{name}", shown, detail)


def _state_faults(queue: Queue, before: Queue | None) -> Iterator[FieldError]:
    state = queue.status.state
    # A queue on its way to Closed must stay editable: only a change of state is judged, never the state it is in.
    if state and state not in SETTABLE_STATES and (before is None or before.status.state != state):
        fault = invalid("requestBody.spec.state", state, f"queue state must be in [{' '.join(SETTABLE_STATES)}]")
        yield replace(fault, place="status.state")


def _hierarchy_faults(queue: Queue, context: Context) -> Iterator[FieldError]:
    hierarchy, weights = _hierarchy(queue)
    if not hierarchy and not weights:
        return
    field = "requestBody.metadata.annotations"
    if hierarchy.count("/") != weights.count("/"):
        yield invalid(field, hierarchy, f"{HIERARCHY} must have the same length with {HIERARCHY_WEIGHTS}")
    elif fault := next((fault for weight in weights.split("/") if (fault := _weight_fault(weight, weights))), None):
        yield invalid(field, weights, fault)
    elif (below := _hierarchy_below(hierarchy, queue, context)) is not None:
        path, owner = below
        yield invalid(field, hierarchy, f"{hierarchy} is not allowed to be in the sub path of {path} of queue {owner}")


def _weight_fault(weight: str, weights: str) -> str | None:
    value = _number(weight)
    if value is None:
        return f'{weight} in the {weights} is invalid number: strconv.ParseFloat: parsing "{weight}": invalid syntax'
    if not math.isfinite(value):
        return f"{weight} in the {weights} must be a finite number"
    return None if value > 0 else f"{weight} in the {weights} must be larger than 0"


def _number(text: str) -> float | None:
    if text.lower().lstrip("+-") in ("inf", "infinity", "nan"):
        return math.inf
    if not _FLOAT.fullmatch(text):
        return None
    try:
        return float.fromhex(text) if "x" in text.lower() else float(text)
    except OverflowError:
        return math.inf


def _hierarchy_below(hierarchy: str, queue: Queue, context: Context) -> tuple[str, str] | None:
    """Path and name of a queue below ``hierarchy``: always the first by name, for answers that do not change."""
    paths = ((other.name, other.metadata.annotations.get(HIERARCHY, "")) for other in context.cluster.queues())
    below = [(name, path) for name, path in paths if path.startswith(hierarchy + "/") and name != queue.name]
    name, path = min(below, default=("", ""))
    return (path, name) if below else None


def _hierarchy(queue: Queue) -> tuple[str, str]:
    return queue.metadata.annotations.get(HIERARCHY, ""), queue.metadata.annotations.get(HIERARCHY_WEIGHTS, "")


# Changes and deletion


def _root_faults(queue: Queue, before: Queue) -> list[FieldError]:
    if _resources_equal(queue, before):
        return []
    text = "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"
    return [sentence("spec", text, Reason.FORBIDDEN)]


def _shares_changed(queue: Queue, before: Queue) -> bool:
    return queue.spec.parent != before.spec.parent or not _resources_equal(queue, before)


def _resources_equal(queue: Queue, before: Queue) -> bool:
    return (
        _equal(queue.spec.capability, before.spec.capability)
        and _equal(queue.spec.deserved, before.spec.deserved)
        and _equal(queue.spec.guarantee.resource, before.spec.guarantee.resource)
    )


def _equal(left: ResourceList, right: ResourceList) -> bool:
    """Whether the amounts are the same; what is no amount is compared as it is written."""
    readable = all(map(quantities.is_quantity, (*left.values(), *right.values())))
    return quantities.equal(left, right) if readable else left == right


def _deletion_faults(context: Context) -> list[FieldError]:
    name = context.name
    if name in (DEFAULT_QUEUE, ROOT_QUEUE):
        return [sentence("metadata.name", f"`{name}` queue can not be deleted", Reason.FORBIDDEN)]
    queue = context.cluster.queue(name)
    if queue is None:
        return [sentence("metadata.name", queue_tree.missing(name), Reason.NOT_FOUND)]
    if context.settings.enable_queue_allocated_pods_check and (pods := queue_tree.allocated_pods(queue)):
        text = f"queue {name} cannot be deleted because it has allocated Pods: {pods}"
        return [sentence("status.allocated.pods", text, Reason.FORBIDDEN)]
    if children := queue_tree.children_below(queue, context.cluster):
        names = ", ".join(child.name for child in children)
        text = f"queue {name} can not be deleted because it has {len(children)} child queues: {names}"
        return [sentence("metadata.name", text, Reason.FORBIDDEN)]
    return []
