"""StatefulSets: pods with stable names, in order (or Parallel), their claims, and rolling updates from the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.controllers.deployments import template_hash
from stromboli.localcluster.controllers.pods import (
    controlled,
    delete_pod,
    from_template,
    is_active,
    is_ready,
    phase,
    write_status,
)
from stromboli.localcluster.controllers.running import Mapper, itself, owned_by
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.storage import Key, Object

REVISION = "controller-revision-hash"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


class StatefulSetController:
    """Makes, replaces and deletes pods of StatefulSets."""

    name = "statefulset"

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def sources(self) -> Mapping[Kind, Mapper]:
        """StatefulSets and their pods."""
        return {kinds.STATEFUL_SETS: itself, kinds.PODS: owned_by("StatefulSet")}

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Take the next step towards the wanted pods."""
        stored = self._registry.store.get(Key.of(kinds.STATEFUL_SETS, namespace, name))
        if stored is None:
            return None
        owner = stored.object
        revision = f"{name}-{template_hash(owner['spec']['template'])}"
        pods = {pod["metadata"]["name"]: pod for pod in controlled(self._registry.store, kinds.PODS, owner)}
        if not owner["metadata"].get("deletionTimestamp"):
            create, delete = plan(owner, pods, revision)
            for pod in delete:
                await delete_pod(self._registry, pod)
            for ordinal in create:
                await self._create(owner, ordinal, revision)
        present = controlled(self._registry.store, kinds.PODS, owner)
        await write_status(self._registry, kinds.STATEFUL_SETS, owner, status(owner, present, revision))
        return None

    async def _create(self, owner: Object, ordinal: int, revision: str) -> None:
        name = f"{owner['metadata']['name']}-{ordinal}"
        labels = {REVISION: revision, POD_NAME: name, POD_INDEX: str(ordinal)}
        pod = from_template(owner["spec"]["template"], kinds.STATEFUL_SETS, owner, name=name, labels=labels)
        pod["spec"]["hostname"] = name
        if owner["spec"].get("serviceName"):
            pod["spec"]["subdomain"] = owner["spec"]["serviceName"]
        for claim in owner["spec"].get("volumeClaimTemplates") or ():
            claim_name = await self._claim(owner, claim, name)
            volumes = [one for one in pod["spec"].get("volumes") or () if one["name"] != claim["metadata"]["name"]]
            source = {"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim_name}}
            pod["spec"]["volumes"] = [*volumes, source]
        await self._registry.create(kinds.PODS, pod)

    async def _claim(self, owner: Object, claim: Object, pod_name: str) -> str:
        namespace = owner["metadata"]["namespace"]
        name = f"{claim['metadata']['name']}-{pod_name}"
        if self._registry.store.get(Key.of(kinds.PERSISTENT_VOLUME_CLAIMS, namespace, name)) is None:
            labels = (owner["spec"]["selector"].get("matchLabels") or {}) | (claim["metadata"].get("labels") or {})
            metadata = {"name": name, "namespace": namespace, "labels": labels}
            body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim["spec"]}
            await self._registry.create(kinds.PERSISTENT_VOLUME_CLAIMS, body)
        return name


def plan(owner: Object, pods: Mapping[str, Object], revision: str) -> tuple[list[int], list[Object]]:
    """Ordinals to create and pods to delete now."""
    spec, name = owner["spec"], owner["metadata"]["name"]
    first = int((spec.get("ordinals") or {}).get("start", 0))
    ordinals = range(first, first + int(spec.get("replicas", 1)))
    wanted = {f"{name}-{ordinal}": ordinal for ordinal in ordinals}
    parallel = spec.get("podManagementPolicy") == "Parallel"
    ended = [pod for one, pod in pods.items() if one in wanted and phase(pod) in ("Failed", "Succeeded")]
    if ended:
        return [], [pod for pod in ended if not pod["metadata"].get("deletionTimestamp")]
    missing = [ordinal for one, ordinal in wanted.items() if one not in pods]
    if parallel and missing:
        return missing, []
    for one, ordinal in wanted.items():
        if one not in pods:
            return [ordinal], []
        if not parallel and not (is_active(pods[one]) and is_ready(pods[one])):
            return [], []
    surplus = [pod for one, pod in pods.items() if one not in wanted]
    if surplus:
        leaving = sorted(surplus, key=ordinal_of, reverse=True)
        chosen = leaving if parallel else leaving[:1]
        return [], [pod for pod in chosen if not pod["metadata"].get("deletionTimestamp")]
    return [], _outdated(spec, [pods[one] for one in wanted], revision)


def ordinal_of(pod: Object) -> int:
    """The number at the end of a pod's name."""
    return int(pod["metadata"]["name"].rsplit("-", 1)[-1])


def status(owner: Object, pods: Sequence[Object], revision: str) -> Object:
    """A StatefulSet's status for its pods."""
    before = owner.get("status") or {}
    alive = [pod for pod in pods if is_active(pod)]
    updated = [pod for pod in alive if _revision(pod) == revision]
    ready = sum(map(is_ready, alive))
    complete = len(updated) == len(alive) == int(owner["spec"].get("replicas", 1))
    current = revision if complete else before.get("currentRevision") or revision
    return {
        "observedGeneration": owner["metadata"].get("generation", 1),
        "replicas": len(alive),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": sum(_revision(pod) == current for pod in alive),
        "updatedReplicas": len(updated),
        "currentRevision": current,
        "updateRevision": revision,
        "collisionCount": 0,
    }


def _outdated(spec: Object, pods: Sequence[Object], revision: str) -> list[Object]:
    """The one pod to replace next in a rolling update, if everything else is ready."""
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete" or any(pod["metadata"].get("deletionTimestamp") for pod in pods):
        return []
    partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    old = [pod for pod in pods if _revision(pod) != revision and ordinal_of(pod) >= partition]
    return [max(old, key=ordinal_of)] if old and all(map(is_ready, pods)) else []


def _revision(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION, ""))
