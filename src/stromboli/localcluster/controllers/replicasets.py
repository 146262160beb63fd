"""ReplicaSets: as many active pods as wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.controllers.pods import (
    adopt,
    delete_pod,
    from_template,
    is_active,
    is_ready,
    to_delete_first,
    write_status,
)
from stromboli.localcluster.controllers.running import Mapper, itself, owned_by
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.storage import Key, Object

BURST = 500
"""Pods made or deleted in one go."""


class ReplicaSetController:
    """Makes and deletes pods of ReplicaSets."""

    name = "replicaset"

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def sources(self) -> Mapping[Kind, Mapper]:
        """ReplicaSets and their pods."""
        return {kinds.REPLICA_SETS: itself, kinds.PODS: owned_by("ReplicaSet")}

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Bring the number of pods to what is wanted."""
        stored = self._registry.store.get(Key.of(kinds.REPLICA_SETS, namespace, name))
        if stored is None:
            return None
        owner = stored.object
        pods = [pod for pod in await adopt(self._registry, kinds.PODS, kinds.REPLICA_SETS, owner) if is_active(pod)]
        wanted = int(owner["spec"].get("replicas", 1))
        if not owner["metadata"].get("deletionTimestamp"):
            for _ in range(min(wanted - len(pods), BURST)):
                template = from_template(owner["spec"]["template"], kinds.REPLICA_SETS, owner)
                pods.append(await self._registry.create(kinds.PODS, template))
            for pod in to_delete_first(pods)[: min(max(len(pods) - wanted, 0), BURST)]:
                await delete_pod(self._registry, pod)
        await write_status(self._registry, kinds.REPLICA_SETS, owner, status(owner, pods))
        return None


def status(owner: Object, pods: Sequence[Object]) -> Object:
    """A ReplicaSet's status for its active pods."""
    labels = ((owner["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
    ready = sum(map(is_ready, pods))
    labelled = [pod for pod in pods if labels.items() <= (pod["metadata"].get("labels") or {}).items()]
    fresh: Object = {
        **(owner.get("status") or {}),
        "replicas": len(pods),
        "fullyLabeledReplicas": len(labelled),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": owner["metadata"].get("generation", 1),
    }
    return {key: value for key, value in fresh.items() if value or key in ("replicas", "observedGeneration")}
