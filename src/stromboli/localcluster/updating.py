"""What the server, not the client, decides about an object on create and update. Pure."""

from __future__ import annotations

from stromboli.localcluster import statuses
from stromboli.localcluster.catalog import ServedKind
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.storage import Object

_KEPT_METADATA = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
                  "generateName", "resourceVersion", "selfLink")  # fmt: skip
_NOT_COUNTED = ("apiVersion", "kind", "metadata", "status")


def prepare_create(served: ServedKind, new: Object) -> None:
    """Drop a custom resource's status, start its generation, and let the kind's strategy do its part."""
    metadata = new["metadata"]
    metadata.pop("generation", None)
    if served.is_custom and served.has_status:
        new.pop("status", None)
    if served.has_generation:
        metadata["generation"] = 1
    if served.strategy is not None:
        served.strategy.prepare_create(new)


def require_version(served: ServedKind, new: Object) -> None:
    """422 for an update of a custom resource without resourceVersion."""
    if served.requires_version and not new["metadata"].get("resourceVersion"):
        cause = Cause(
            "FieldValueInvalid", "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
        )
        raise statuses.invalid(served.kind, new["metadata"].get("name", ""), [cause])


def prepare_update(served: ServedKind, new: Object, old: Object, subresource: str) -> Object:
    """The object to go on with: ``new`` where the subresource may write, ``old`` elsewhere."""
    match subresource:
        case "status":
            new = _only_status(served, new, old)
        case "finalize":
            new = {**old, "spec": {**old.get("spec", {}), "finalizers": new.get("spec", {}).get("finalizers", [])}}
        case "" if served.has_status:
            _take(new, old, "status")
    _keep_metadata(new, old)
    if served.strategy is not None and subresource != "finalize":
        served.strategy.prepare_update(new, old)
    return new


def written_part(obj: Object, subresource: str) -> Object:
    """The part of an object that a status write looks at: nothing else needs to be decoded."""
    if subresource != "status":
        return obj
    return {key: value for key, value in obj.items() if key in ("apiVersion", "kind", "metadata", "status")}


def _only_status(served: ServedKind, new: Object, old: Object) -> Object:
    """A status write: of custom resources the status alone, of built-in kinds labels and annotations as well.

    Who manages the status is part of the write: without that, a later apply would not know what to remove.
    """
    kept: Object = {**old}
    _take(kept, new, "status")
    if served.is_custom:
        kept["metadata"] = {**old["metadata"]}
        if "managedFields" in new["metadata"]:
            kept["metadata"]["managedFields"] = new["metadata"]["managedFields"]
    else:
        kept["metadata"] = {**new["metadata"], "ownerReferences": old["metadata"].get("ownerReferences")}
        if kept["metadata"]["ownerReferences"] is None:
            del kept["metadata"]["ownerReferences"]
    return kept


def _take(target: Object, source: Object, field: str) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


def _keep_metadata(new: Object, old: Object) -> None:
    metadata = new["metadata"] = {**new["metadata"]}
    for field in _KEPT_METADATA:
        _take(metadata, old["metadata"], field)


def bump_generation(served: ServedKind, new: Object, old: Object) -> None:
    """Count a change of what the user wants (everything but metadata and status)."""
    if served.has_generation and _wanted(new) != _wanted(old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _wanted(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in _NOT_COUNTED}
