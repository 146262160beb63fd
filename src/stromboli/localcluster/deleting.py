"""What a deletion does to an object: removed at once, or marked and left until grace and finalizers are over. Pure."""

from __future__ import annotations

from typing import Any

from stromboli.api import kinds
from stromboli.localcluster import clock
from stromboli.localcluster.catalog import ServedKind
from stromboli.localcluster.requests import DeleteOptions
from stromboli.localcluster.storage import Object

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
DEFAULT_POD_GRACE = 30


def marked(served: ServedKind, obj: Object, options: DeleteOptions) -> Object | None:
    """The object as the deletion leaves it, or None when it can be removed now."""
    metadata = dict(obj["metadata"])
    _propagate(metadata, options)
    grace = _grace(served, obj, options)
    if not metadata.get("finalizers") and not grace and not _has_namespace_finalizers(served, obj):
        return None
    _mark(metadata, grace)
    result = {**obj, "metadata": metadata}
    if served.kind == kinds.NAMESPACES:
        result["status"] = {**obj.get("status", {}), "phase": "Terminating"}
    return result


def is_finished(served: ServedKind, obj: Object) -> bool:
    """Whether an update leaves a marked object that nothing holds any more."""
    metadata = obj["metadata"]
    return bool(
        metadata.get("deletionTimestamp")
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not _has_namespace_finalizers(served, obj)
    )


def wire_options(options: DeleteOptions) -> Object:
    """``DeleteOptions`` as admission webhooks see them."""
    wire: Object = {"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"}
    if options.grace_period is not None:
        wire["gracePeriodSeconds"] = options.grace_period
    if options.propagation is not None:
        wire["propagationPolicy"] = options.propagation
    if options.dry_run:
        wire["dryRun"] = ["All"]
    preconditions = {"uid": options.uid, "resourceVersion": options.resource_version}
    if any(preconditions.values()):
        wire["preconditions"] = {key: value for key, value in preconditions.items() if value}
    return wire


def _propagate(metadata: dict[str, Any], options: DeleteOptions) -> None:
    """Without a policy, finalizers that are there already decide (so a repeated delete does not change its mind)."""
    if options.propagation is None:
        return
    wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(options.propagation)
    finalizers = [one for one in metadata.get("finalizers") or [] if one not in (FOREGROUND, ORPHAN)]
    if wanted:
        finalizers.append(wanted)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def _grace(served: ServedKind, obj: Object, options: DeleteOptions) -> int:
    """Seconds until a pod must be gone; a second deletion can only shorten them. Other kinds have no grace."""
    if served.kind != kinds.PODS:
        return 0
    spec, status, metadata = obj.get("spec", {}), obj.get("status", {}), obj["metadata"]
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    present = metadata.get("deletionGracePeriodSeconds")
    if options.grace_period is not None:
        wanted = max(0, options.grace_period)
    elif present is not None:
        wanted = present
    else:
        wanted = spec.get("terminationGracePeriodSeconds", DEFAULT_POD_GRACE)
    return int(wanted if present is None else min(wanted, present))


def _mark(metadata: dict[str, Any], grace: int) -> None:
    present = metadata.get("deletionGracePeriodSeconds")
    if metadata.get("deletionTimestamp") and (present or 0) <= grace:
        return
    metadata["deletionTimestamp"] = clock.timestamp(grace)
    metadata["deletionGracePeriodSeconds"] = grace


def _has_namespace_finalizers(served: ServedKind, obj: Object) -> bool:
    return served.kind == kinds.NAMESPACES and bool(obj.get("spec", {}).get("finalizers"))
