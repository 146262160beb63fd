"""Deployments: one ReplicaSet for each revision of the template, and rolling updates between them.

``plan_rollout`` decides how many pods each ReplicaSet should have now; the controller makes it so. Pods count as
available as soon as they are ready (``minReadySeconds`` is not waited for), and ``progressDeadlineSeconds`` has no
effect.
"""

from __future__ import annotations

import copy
import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.controllers.pods import adopt, owner_reference, with_condition, write_status
from stromboli.localcluster.controllers.running import Mapper, itself, owned_by
from stromboli.localcluster.nodes.timestamps import stamp
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.storage import Key, Object

REVISION = "deployment.kubernetes.io/revision"
_NOT_CARRIED = frozenset({REVISION, "kubectl.kubernetes.io/last-applied-configuration"})
HASH_LABEL = "pod-template-hash"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class DeploymentController:
    """Rolls Deployments out."""

    name = "deployment"

    def __init__(self, registry: Registry, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._now = now

    def sources(self) -> Mapping[Kind, Mapper]:
        """Deployments and their ReplicaSets."""
        return {kinds.DEPLOYMENTS: itself, kinds.REPLICA_SETS: owned_by("Deployment")}

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Bring the ReplicaSets one step closer to the template."""
        stored = self._registry.store.get(Key.of(kinds.DEPLOYMENTS, namespace, name))
        if stored is None:
            return None
        owner = stored.object
        sets = await adopt(self._registry, kinds.REPLICA_SETS, kinds.DEPLOYMENTS, owner)
        if owner["metadata"].get("deletionTimestamp"):
            return None
        current = find_current(owner, sets)
        if current is None and not owner["spec"].get("paused"):
            current = await self._new_set(owner, sets)
            sets = [*sets, current]
        elif current is not None:
            renewed = await self._renumber(owner, current, sets)
            sets = [renewed if one is current else one for one in sets]
            current = renewed
        for one, replicas in plan_rollout(owner, current, sets):
            await self._registry.update(kinds.REPLICA_SETS, {**one, "spec": {**one["spec"], "replicas": replicas}})
        sets = await adopt(self._registry, kinds.REPLICA_SETS, kinds.DEPLOYMENTS, owner)
        owner = await self._annotate(owner, current)
        await self._clean_up(owner, sets)
        fresh = status(owner, find_current(owner, sets), sets, stamp(self._now()))
        await write_status(self._registry, kinds.DEPLOYMENTS, owner, fresh)
        return None

    async def _new_set(self, owner: Object, sets: Sequence[Object]) -> Object:
        template = copy.deepcopy(owner["spec"]["template"])
        marker = template_hash(template, int((owner.get("status") or {}).get("collisionCount") or 0))
        labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: marker}
        template["metadata"] = {**(template.get("metadata") or {}), "labels": labels}
        selector = copy.deepcopy(owner["spec"]["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: marker}
        metadata = {
            "name": f"{owner['metadata']['name']}-{marker}",
            "namespace": owner["metadata"]["namespace"],
            "labels": labels,
            "annotations": {**_carried(owner), REVISION: str(max(map(revision, sets), default=0) + 1)},
            "ownerReferences": [owner_reference(kinds.DEPLOYMENTS, owner)],
        }
        spec = {"replicas": 0, "selector": selector, "template": template}
        body: Object = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}
        return await self._registry.create(kinds.REPLICA_SETS, body)

    async def _renumber(self, owner: Object, current: Object, sets: Sequence[Object]) -> Object:
        """A template that comes back (rollback) gets the newest revision number."""
        newest = max((revision(one) for one in sets if one is not current), default=0)
        if revision(current) > newest:
            return current
        return await self._registry.update(kinds.REPLICA_SETS, _annotated(current, str(newest + 1)))

    async def _annotate(self, owner: Object, current: Object | None) -> Object:
        if current is None or revision(owner) == revision(current):
            return owner
        return await self._registry.update(kinds.DEPLOYMENTS, _annotated(owner, str(revision(current))))

    async def _clean_up(self, owner: Object, sets: Sequence[Object]) -> None:
        limit = int(owner["spec"].get("revisionHistoryLimit", 10))
        current = find_current(owner, sets)
        unused = [one for one in sets if one is not current and not _wanted(one) and not _count(one, "replicas")]
        for one in sorted(unused, key=revision)[: max(len(unused) - limit, 0)]:
            if not one["metadata"].get("deletionTimestamp"):
                await self._registry.delete(kinds.REPLICA_SETS, one["metadata"]["namespace"], one["metadata"]["name"])


def _carried(owner: Object) -> dict[str, str]:
    """Annotations of a Deployment that its ReplicaSets get too."""
    annotations = owner["metadata"].get("annotations") or {}
    return {key: value for key, value in annotations.items() if key not in _NOT_CARRIED}


def plan_rollout(owner: Object, current: Object | None, sets: Sequence[Object]) -> list[tuple[Object, int]]:
    """ReplicaSets whose number of replicas should change now, and to what."""
    wanted = int(owner["spec"].get("replicas", 1))
    old = sorted((one for one in sets if one is not current), key=revision)
    if owner["spec"].get("paused"):
        only = current or (old[-1] if old else None)
        return [(only, wanted)] if only is not None and len(_populated(sets)) <= 1 and _wanted(only) != wanted else []
    if current is None:
        return []
    strategy = owner["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return _recreate(current, old, wanted)
    surge, unavailable = bounds(strategy.get("rollingUpdate") or {}, wanted)
    changes: list[tuple[Object, int]] = []
    total = sum(max(_wanted(one), _count(one, "replicas")) for one in sets)  # pods that are to go are still there
    room = max(wanted + surge - total, 0)
    target = wanted if _wanted(current) > wanted else min(wanted, _wanted(current) + room)
    if target != _wanted(current):
        changes.append((current, target))
    return changes + _scale_down(current, target, old, wanted - unavailable)


def bounds(rolling: Mapping[str, Any], wanted: int) -> tuple[int, int]:
    """``maxSurge`` and ``maxUnavailable`` as numbers; both cannot be zero."""
    surge = _portion(rolling.get("maxSurge", "25%"), wanted, math.ceil)
    unavailable = _portion(rolling.get("maxUnavailable", "25%"), wanted, math.floor)
    return surge, max(unavailable, 1) if surge == 0 else unavailable


def find_current(owner: Object, sets: Sequence[Object]) -> Object | None:
    """The ReplicaSet made from the Deployment's present template."""
    wanted = _comparable(owner["spec"]["template"])
    found = [one for one in sets if _comparable(one["spec"]["template"]) == wanted]
    return min(found, key=lambda one: str(one["metadata"].get("creationTimestamp")), default=None)


def template_hash(template: Object, collisions: int = 0) -> str:
    """A short name for a template."""
    content = orjson.dumps([_comparable(template), collisions], option=orjson.OPT_SORT_KEYS)
    number = int.from_bytes(hashlib.sha256(content).digest()[:8], "big")
    letters = []
    for _ in range(10):
        number, index = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return "".join(letters)


def revision(obj: Object) -> int:
    """The revision number in the annotations."""
    text = (obj["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def status(owner: Object, current: Object | None, sets: Sequence[Object], now: str) -> Object:
    """A Deployment's status for its ReplicaSets."""
    wanted = int(owner["spec"].get("replicas", 1))
    replicas, ready, available = (
        sum(_count(one, field) for one in sets) for field in ("replicas", "readyReplicas", "availableReplicas")
    )
    updated = _count(current, "replicas") if current is not None else 0
    _, unavailable = bounds((owner["spec"].get("strategy") or {}).get("rollingUpdate") or {}, wanted)
    before = (owner.get("status") or {}).get("conditions") or ()
    name = current["metadata"]["name"] if current is not None else ""
    if available >= wanted - unavailable:
        text = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        text = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    conditions = with_condition(before, "Available", *text, now)
    if updated == wanted == replicas == available:
        text = ("True", "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
    else:
        text = ("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    fresh: Object = {
        "observedGeneration": owner["metadata"].get("generation", 1),
        "replicas": replicas,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": available,
        "unavailableReplicas": max(max(replicas, wanted) - available, 0),
        "conditions": with_condition(conditions, "Progressing", *text, now),
    }
    return {key: value for key, value in fresh.items() if value}


def _recreate(current: Object, old: Sequence[Object], wanted: int) -> list[tuple[Object, int]]:
    running = [one for one in old if _wanted(one)]
    if running:
        return [(one, 0) for one in running]
    if any(_count(one, "replicas") for one in old) or _wanted(current) == wanted:
        return []
    return [(current, wanted)]


def _scale_down(current: Object, target: int, old: Sequence[Object], minimum: int) -> list[tuple[Object, int]]:
    """Take pods from old ReplicaSets, the ones that never became available first, as availability allows."""
    available = sum(_count(one, "availableReplicas") for one in [*old, current])
    unready_new = target - min(_count(current, "availableReplicas"), target)
    spare = sum(map(_wanted, old)) + target - minimum - unready_new
    changes = []
    for one in old:
        unhealthy = max(_wanted(one) - _count(one, "availableReplicas"), 0)
        healthy = min(max(available - minimum, 0), _wanted(one) - unhealthy)
        step = min(unhealthy + healthy, max(spare, 0), _wanted(one))
        if step > 0:
            changes.append((one, _wanted(one) - step))
            spare -= step
            available -= max(step - unhealthy, 0)
    return changes


def _portion(value: object, wanted: int, rounded: Callable[[float], int]) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return int(rounded(wanted * int(value[:-1]) / 100))
    return int(str(value))


def _comparable(template: Object) -> Object:
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    kept = {key: value for key, value in metadata.items() if key not in ("labels", "creationTimestamp") and value}
    return {**template, "metadata": {**kept, "labels": labels}}


def _annotated(obj: Object, number: str) -> Object:
    annotations = {**(obj["metadata"].get("annotations") or {}), REVISION: number}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _wanted(one: Object) -> int:
    return int(one["spec"].get("replicas", 1))


def _count(one: Object, field: str) -> int:
    return int((one.get("status") or {}).get(field) or 0)


def _populated(sets: Sequence[Object]) -> list[Object]:
    return [one for one in sets if _wanted(one)]
