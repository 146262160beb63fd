"""Priority: a pod's ``priorityClassName`` becomes a number and a preemption policy; one class at most is default."""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.statuses import forbidden
from stromboli.localcluster.storage import Key, Object, Store

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def system_priority_classes() -> list[Object]:
    """The classes that exist from the start."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "globalDefault": False,
            "preemptionPolicy": "PreemptLowerPriority",
            "description": f"Used for system critical pods that must {'not be moved' if 'node' in name else 'run'}.",
        }
        for name, value in SYSTEM_CLASSES.items()
    ]


def set_priority(request: AdmissionRequest, store: Store) -> None:
    """Set priority and policy of a new pod; refuse a class that does not exist and a second default class."""
    if request.subresource or request.obj is None:
        return
    if request.kind == kinds.PODS and request.operation == "CREATE":
        _set_pod_priority(request, request.obj, store)
    elif request.kind == kinds.PRIORITY_CLASSES and request.obj.get("globalDefault"):
        default = _default_class(store)
        if default is not None and default["metadata"]["name"] != request.name:
            name = default["metadata"]["name"]
            why = f"PriorityClass {name} is already marked as default. Only one default can exist"
            raise forbidden(kinds.PRIORITY_CLASSES, request.name, why)


def _set_pod_priority(request: AdmissionRequest, pod: Object, store: Store) -> None:
    spec = pod["spec"]
    name = spec.get("priorityClassName") or ""
    if name:
        stored = store.get(Key.of(kinds.PRIORITY_CLASSES, None, name))
        if stored is None:
            raise forbidden(kinds.PODS, request.name, f"no PriorityClass with name {name} was found")
        chosen: Object | None = stored.object
    else:
        chosen = _default_class(store)
    value = int(chosen["value"]) if chosen else 0
    if spec.get("priority") not in (None, value):
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise forbidden(kinds.PODS, request.name, why)
    policy = (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    if spec.get("preemptionPolicy") not in (None, policy):
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise forbidden(kinds.PODS, request.name, why)
    spec["priority"] = value
    spec["preemptionPolicy"] = policy
    if chosen and not name:
        spec["priorityClassName"] = chosen["metadata"]["name"]


def _default_class(store: Store) -> Object | None:
    """The class marked as default; of several (as clusters of old may have) the one with the lowest value."""
    marked = [stored.object for stored in store.list(kinds.PRIORITY_CLASSES) if stored.object.get("globalDefault")]
    return min(marked, key=lambda one: int(one["value"]), default=None)
