"""What controllers of pods share: which pods are theirs, how they are doing, and how new ones are made."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.labels import selects
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.requests import DeleteOptions
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Object, Store

FINISHED = ("Succeeded", "Failed")


def owner_reference(kind: Kind, owner: Object) -> Object:
    """The reference of a controller to put into what it makes."""
    metadata = owner["metadata"]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(obj: Object) -> Object | None:
    """The owner reference of the controller, if there is one."""
    references: Sequence[Object] = obj["metadata"].get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), None)


def controlled(store: Store, kind: Kind, owner: Object) -> list[Object]:
    """Objects of ``kind`` in the owner's namespace that it controls."""
    uid = owner["metadata"]["uid"]
    found = []
    for stored in store.list(kind, owner["metadata"]["namespace"]):
        reference = controller_of(stored.object)
        if reference is not None and reference["uid"] == uid:
            found.append(stored.object)
    return found


async def adopt(registry: Registry, kind: Kind, owner_kind: Kind, owner: Object) -> list[Object]:
    """What the owner controls, after taking over what its selector matches and nobody controls."""
    selector = owner["spec"].get("selector")
    uid = owner["metadata"]["uid"]
    found = []
    for stored in registry.store.list(kind, owner["metadata"]["namespace"]):
        obj = stored.object
        reference = controller_of(obj)
        if reference is not None:
            if reference["uid"] == uid:
                found.append(obj)
        elif (
            not obj["metadata"].get("deletionTimestamp")
            and not owner["metadata"].get("deletionTimestamp")
            and selects(selector, obj["metadata"].get("labels") or {})
        ):
            references = [*(obj["metadata"].get("ownerReferences") or ()), owner_reference(owner_kind, owner)]
            found.append(
                await registry.update(kind, {**obj, "metadata": {**obj["metadata"], "ownerReferences": references}})
            )
    return found


def is_active(pod: Object) -> bool:
    """Whether a pod counts towards the wanted number: it has not ended and is not going away."""
    return not pod["metadata"].get("deletionTimestamp") and phase(pod) not in FINISHED


def phase(pod: Object) -> str:
    """The pod's phase."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_ready(pod: Object) -> bool:
    """Whether the pod's Ready condition is true."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def from_template(
    template: Object,
    kind: Kind,
    owner: Object,
    *,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """A pod of a template; with a generated name unless one is given."""
    meta = template.get("metadata") or {}
    metadata: Object = {
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(meta.get("labels") or {}), **(labels or {})},
        "annotations": {**(meta.get("annotations") or {}), **(annotations or {})},
        "ownerReferences": [owner_reference(kind, owner)],
    }
    if meta.get("finalizers"):
        metadata["finalizers"] = list(meta["finalizers"])
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{owner['metadata']['name']}-"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy.deepcopy(template["spec"])}


def to_delete_first(pods: Iterable[Object]) -> list[Object]:
    """Pods in the order in which they are given up: unassigned, not running, not ready, youngest."""

    def worth(pod: Object) -> tuple[bool, bool, bool, bool]:
        return bool(pod["spec"].get("nodeName")), phase(pod) == "Running", is_ready(pod), False

    youngest = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), reverse=True)
    return sorted(youngest, key=worth)


async def delete_pod(registry: Registry, pod: Object, grace_period: int | None = None) -> None:
    """Delete this very pod; one that is gone already is fine."""
    metadata = pod["metadata"]
    options = DeleteOptions(uid=metadata["uid"], grace_period=grace_period)
    try:
        await registry.delete(kinds.PODS, metadata["namespace"], metadata["name"], options)
    except StatusError as error:
        if error.reason not in ("NotFound", "Conflict"):
            raise


async def write_status(registry: Registry, kind: Kind, obj: Object, status: Object) -> None:
    """Write a status if it differs from the present one."""
    if status != (obj.get("status") or {}):
        await registry.update(kind, {**obj, "status": status}, subresource="status")


def with_condition(
    conditions: Sequence[Object], kind: str, status: str, reason: str, message: str, now: str
) -> list[Object]:
    """The conditions with one of them set; its transition time moves only with its status."""
    kept = [one for one in conditions if one["type"] != kind]
    before = next((one for one in conditions if one["type"] == kind), None)
    same = before is not None and before["status"] == status
    if same and before is not None and (before.get("reason"), before.get("message")) == (reason, message):
        return list(conditions)
    moved = before["lastTransitionTime"] if same and before is not None else now
    fresh = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": moved}
    return [*kept, fresh]
