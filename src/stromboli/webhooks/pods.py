"""Pods: the resource group they belong to, and their disruption annotations (spec 07 sections 15 and 16)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from stromboli.api.names import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, QUEUE_ALLOCATION_GATE, RESOURCE_GROUP
from stromboli.webhooks.admission_configuration import ResourceGroup
from stromboli.webhooks.context import Context
from stromboli.webhooks.errors import FieldError, Reason, sentence
from stromboli.webhooks.shapes import JsonObject, Pod, read

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


# Defaults


def default(obj: JsonObject, context: Context) -> JsonObject:
    """The pod with its resource group's placement and, where asked for, the gate that waits for its queue.

    Without a configuration file nothing is changed at all.
    """
    if context.groups is None:
        return obj
    pod = read(Pod, obj)
    spec = dict(obj.get("spec", {}))
    group = matching_group(pod, context)
    if group is not None:
        spec |= _placement(pod, group)
    if _wants_gate(pod, str(spec.get("schedulerName", "")), context):
        spec["schedulingGates"] = [*spec.get("schedulingGates", ()), {"name": QUEUE_ALLOCATION_GATE}]
    return {**obj, "spec": spec}


def matching_group(pod: Pod, context: Context) -> ResourceGroup | None:
    """The first group of the configuration that the pod belongs to."""
    namespace = pod.metadata.namespace or context.namespace
    return next((group for group in context.groups or () if _matches(pod, namespace, group)), None)


def _matches(pod: Pod, namespace: str, group: ResourceGroup) -> bool:
    annotations = pod.metadata.annotations
    match group.object.key:
        case "namespace":
            return namespace in group.object.value
        case "annotation":
            return _any_annotation(annotations, group)
        case "":
            return _any_annotation(annotations, group) or annotations.get(RESOURCE_GROUP, "") == group.name
        case _:
            return False


def _any_annotation(annotations: Mapping[str, str], group: ResourceGroup) -> bool:
    return any(annotations.get(key, "") == value for key, value in group.object.annotations().items())


def _placement(pod: Pod, group: ResourceGroup) -> JsonObject:
    placement: JsonObject = {}
    if group.labels:
        placement["nodeSelector"] = {**pod.spec.node_selector, **group.labels}
    if pod.spec.affinity is None and (affinity := group.affinity_object()) is not None:
        placement["affinity"] = affinity
    if group.tolerations:
        placement["tolerations"] = [*pod.spec.tolerations, *group.tolerations]
    if group.scheduler_name:
        placement["schedulerName"] = group.scheduler_name
    return placement


def _wants_gate(pod: Pod, scheduler: str, context: Context) -> bool:
    if (
        not context.settings.scheduling_gates_queue_admission
        or pod.metadata.annotations.get(QUEUE_ALLOCATION_GATE) != "true"
    ):
        return False
    # A foreign scheduler would never take the gate away. (The API server fills in the name before it asks us.)
    if scheduler and scheduler not in context.settings.scheduler_names:
        return False
    return all(gate.name != QUEUE_ALLOCATION_GATE for gate in pod.spec.scheduling_gates or ())


# Validation


def validate(obj: JsonObject | None, old: JsonObject | None, context: Context) -> list[FieldError]:
    """The fault of a pod's disruption annotations; pods of other schedulers are not looked at."""
    pod = read(Pod, obj)
    if pod.spec.scheduler_name not in context.settings.scheduler_names:
        return []
    given = [key for key in (JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE) if key in pod.metadata.annotations]
    for key in given:
        if (text := _budget_text(key, pod.metadata.annotations[key])) is not None:
            return [sentence(f"metadata.annotations[{key}]", text)]
    if len(given) > 1:
        text = f"not allow configure multiple annotations <[{' '.join(given)}]> at same time"
        return [sentence("metadata.annotations", text, Reason.FORBIDDEN)]
    return []


def _budget_text(key: str, value: str) -> str | None:
    """What is wrong with a number or percentage of pods; signs, zeros and stray per-cent signs are the original's."""
    number = _integer(value, bits=32)
    if number is not None:
        return None if number > 0 else f'invalid value <"{value}"> for {key}, it must be a positive integer'
    rest = value.replace("%", "")
    percentage = _integer(rest, bits=64)
    if percentage is None:
        what = "value out of range" if _INTEGER.fullmatch(rest) else "invalid syntax"
        return f'invalid value strconv.Atoi: parsing "{rest}": {what} for {key}'
    if not 1 <= percentage <= 99:
        return f'invalid value <"{value}"> for {key}, it must be a valid percentage which between 1% ~ 99%'
    return None


def _integer(text: str, *, bits: int) -> int | None:
    # The length bound keeps a hostile annotation from costing quadratic time.
    if not _INTEGER.fullmatch(text) or len(text.lstrip("+-0")) > 20:
        return None
    number = int(text)
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None
