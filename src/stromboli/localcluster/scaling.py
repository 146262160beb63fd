"""The scale subresource: ``autoscaling/v1`` Scale from and to whatever kind has replicas. Pure."""

from __future__ import annotations

from typing import Any

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster import statuses
from stromboli.localcluster.catalog import ScalePaths, ServedKind, dig
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.storage import Object

SCALE = Kind("autoscaling", "v1", "scales", "Scale")

_COPIED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(served: ServedKind, obj: Object) -> Object:
    """The Scale that shows an object's replicas."""
    paths = _paths(served)
    metadata = {key: obj["metadata"][key] for key in _COPIED if key in obj["metadata"]}
    status: dict[str, Any] = {"replicas": dig(obj, paths.status) or 0}
    selector = _selector(served, obj, paths)
    if selector:
        status["selector"] = selector
    spec = {"replicas": dig(obj, paths.spec) or 0}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def scaled(served: ServedKind, obj: Object, scale: Object) -> Object:
    """``obj`` with the replicas that ``scale`` wants; 422 for a number below zero."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise statuses.cannot_be_handled(SCALE, "spec.replicas must be an integer")
    if replicas < 0:
        cause = Cause(
            "FieldValueInvalid", "spec.replicas", f"Invalid value: {replicas}: must be greater than or equal to 0"
        )
        raise statuses.invalid(SCALE, obj["metadata"]["name"], [cause])
    version = (scale.get("metadata") or {}).get("resourceVersion")
    changed = {**obj, "metadata": {**obj["metadata"], **({"resourceVersion": version} if version else {})}}
    _put(changed, _paths(served).spec, replicas)
    return changed


def _paths(served: ServedKind) -> ScalePaths:
    if served.scale is None:
        raise statuses.no_such_path()
    return served.scale


def _selector(served: ServedKind, obj: Object, paths: ScalePaths) -> str:
    found = dig(obj, paths.selector) if paths.selector else None
    if isinstance(found, str):
        return found
    return "" if served.is_custom else selector_text(dig(obj, ".spec.selector"))


def selector_text(selector: object) -> str:
    """A label selector as ``kubectl -l`` takes it."""
    if not isinstance(selector, dict):
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for one in selector.get("matchExpressions") or []:
        values = ",".join(sorted(one.get("values") or []))
        match one["operator"]:
            case "In":
                terms.append(f"{one['key']} in ({values})")
            case "NotIn":
                terms.append(f"{one['key']} notin ({values})")
            case "Exists":
                terms.append(one["key"])
            case "DoesNotExist":
                terms.append(f"!{one['key']}")
    return ",".join(terms)


def _put(obj: Object, path: str, value: int) -> None:
    *parents, last = path.lstrip(".").split(".")
    place = obj
    for name in parents:
        place[name] = {**place.get(name, {})}
        place = place[name]
    place[last] = value


SCALABLE = (kinds.DEPLOYMENTS, kinds.REPLICA_SETS, kinds.STATEFUL_SETS, kinds.REPLICATION_CONTROLLERS)
"""Built-in kinds that have the subresource."""
