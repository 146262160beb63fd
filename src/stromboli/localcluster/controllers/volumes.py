"""PersistentVolumeClaims: bound to a volume that is there, or to one made for them.

Every StorageClass provisions here, whatever its provisioner says. Claims of a class with ``WaitForFirstConsumer`` wait
until a pod that uses them is bound to a node, or a scheduler has put ``volume.kubernetes.io/selected-node`` on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from stromboli.api import kinds, quantities
from stromboli.api.kinds import Kind
from stromboli.localcluster.admission.storageclasses import IS_DEFAULT
from stromboli.localcluster.controllers.running import Mapper, itself
from stromboli.localcluster.labels import selects
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.storage import Key, Object

DEFAULT_CLASS = "standard"
PROVISIONER = "simulation.stromboli.dev/volumes"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def default_storage_class() -> Object:
    """The StorageClass that exists from the start."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": DEFAULT_CLASS, "annotations": {IS_DEFAULT: "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


class VolumeController:
    """Binds claims and releases or deletes the volumes of claims that are gone."""

    name = "persistentvolume"

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def sources(self) -> Mapping[Kind, Mapper]:
        """Claims, volumes (for their claims) and pods (for claims that wait for them)."""
        return {
            kinds.PERSISTENT_VOLUME_CLAIMS: itself,
            kinds.PERSISTENT_VOLUMES: self._claims_of_volume,
            kinds.PODS: _claims_of_pod,
        }

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Bind one claim, or let the volume of one that is gone go."""
        stored = self._registry.store.get(Key.of(kinds.PERSISTENT_VOLUME_CLAIMS, namespace, name))
        if stored is None:
            await self._release(namespace, name, None)
            return None
        claim = stored.object
        await self._release(namespace, name, claim["metadata"]["uid"])
        if claim["metadata"].get("deletionTimestamp"):
            return None
        if (claim.get("status") or {}).get("phase") == "Bound":
            return None
        await self._bind(claim)
        return None

    async def _bind(self, claim: Object) -> None:
        storage_class = self._class_of(claim)
        volume = self._fitting_volume(claim)
        if volume is None:
            if storage_class is None:
                return await self._pending(claim)
            node = self._node_for(claim)
            if storage_class.get("volumeBindingMode") == "WaitForFirstConsumer" and not node:
                return await self._pending(claim)
            volume = await self._registry.create(kinds.PERSISTENT_VOLUMES, new_volume(claim, storage_class, node))
        await self._tie(claim, volume)
        return None

    async def _pending(self, claim: Object) -> None:
        if (claim.get("status") or {}).get("phase") != "Pending":
            fresh = {**claim, "status": {**(claim.get("status") or {}), "phase": "Pending"}}
            await self._registry.update(kinds.PERSISTENT_VOLUME_CLAIMS, fresh, subresource="status")

    async def _tie(self, claim: Object, volume: Object) -> None:
        reference = claim_reference(claim)
        if (volume["spec"].get("claimRef") or {}).get("uid") != reference["uid"]:
            spec = {**volume["spec"], "claimRef": reference}
            volume = await self._registry.update(kinds.PERSISTENT_VOLUMES, {**volume, "spec": spec})
        await self._registry.update(
            kinds.PERSISTENT_VOLUMES,
            {**volume, "status": {**(volume.get("status") or {}), "phase": "Bound"}},
            subresource="status",
        )
        if claim["spec"].get("volumeName") != volume["metadata"]["name"]:
            spec = {**claim["spec"], "volumeName": volume["metadata"]["name"]}
            claim = await self._registry.update(kinds.PERSISTENT_VOLUME_CLAIMS, {**claim, "spec": spec})
        status = {
            **(claim.get("status") or {}),
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes") or [],
            "capacity": volume["spec"].get("capacity") or {},
        }
        await self._registry.update(kinds.PERSISTENT_VOLUME_CLAIMS, {**claim, "status": status}, subresource="status")

    async def _release(self, namespace: str, name: str, uid: str | None) -> None:
        """Let volumes go that were bound to an earlier claim of this name."""
        for stored in self._registry.store.list(kinds.PERSISTENT_VOLUMES):
            volume = stored.object
            reference = volume["spec"].get("claimRef") or {}
            if (reference.get("namespace"), reference.get("name")) != (namespace, name):
                continue
            if not reference.get("uid") or reference["uid"] == uid:
                continue
            if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                await self._registry.delete(kinds.PERSISTENT_VOLUMES, None, stored.key.name)
            elif (volume.get("status") or {}).get("phase") != "Released":
                status = {**(volume.get("status") or {}), "phase": "Released"}
                fresh = {**volume, "status": status}
                await self._registry.update(kinds.PERSISTENT_VOLUMES, fresh, subresource="status")

    def _class_of(self, claim: Object) -> Object | None:
        name = claim["spec"].get("storageClassName")
        if not name:
            return None
        stored = self._registry.store.get(Key.of(kinds.STORAGE_CLASSES, None, name))
        return stored.object if stored else None

    def _fitting_volume(self, claim: Object) -> Object | None:
        """The volume that is meant for the claim, else the smallest free one that is large enough."""
        volumes = [stored.object for stored in self._registry.store.list(kinds.PERSISTENT_VOLUMES)]
        reference = claim_reference(claim)
        for volume in volumes:
            meant = volume["spec"].get("claimRef") or {}
            ours = (meant.get("namespace"), meant.get("name")) == (reference["namespace"], reference["name"])
            if ours and meant.get("uid") in (None, "", reference["uid"]):
                return volume
        wanted = claim["spec"].get("volumeName")
        free = [volume for volume in volumes if not volume["spec"].get("claimRef")]
        if wanted:
            return next((volume for volume in free if volume["metadata"]["name"] == wanted), None)
        return min((volume for volume in free if fits(volume, claim)), key=_capacity, default=None)

    def _node_for(self, claim: Object) -> str:
        selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if selected:
            return str(selected)
        namespace = claim["metadata"]["namespace"]
        for stored in self._registry.store.list(kinds.PODS, namespace):
            pod = stored.object
            if pod["spec"].get("nodeName") and (namespace, claim["metadata"]["name"]) in _claims_of_pod(pod):
                return str(pod["spec"]["nodeName"])
        return ""

    def _claims_of_volume(self, volume: Object) -> Iterable[tuple[str, str]]:
        reference = volume["spec"].get("claimRef")
        if reference:
            return [(reference.get("namespace", ""), reference["name"])]
        claims = self._registry.store.list(kinds.PERSISTENT_VOLUME_CLAIMS)
        return [(one.key.namespace, one.key.name) for one in claims if not one.object["spec"].get("volumeName")]


def new_volume(claim: Object, storage_class: Object, node: str) -> Object:
    """The volume to make for a claim; tied to the node for classes that wait for one."""
    spec: Object = {
        "accessModes": claim["spec"].get("accessModes") or ["ReadWriteOnce"],
        "capacity": {"storage": _requested(claim)},
        "claimRef": claim_reference(claim),
        "csi": {"driver": storage_class["provisioner"], "volumeHandle": claim["metadata"]["uid"]},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class["metadata"]["name"],
        "volumeMode": claim["spec"].get("volumeMode") or "Filesystem",
    }
    if node and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer":
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    metadata = {
        "name": f"pvc-{claim['metadata']['uid']}",
        "annotations": {"pv.kubernetes.io/provisioned-by": storage_class["provisioner"]},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def fits(volume: Object, claim: Object) -> bool:
    """Whether a free volume serves a claim: class, access modes, mode, labels and size."""
    spec, wanted = volume["spec"], claim["spec"]
    selector = wanted.get("selector")
    return (
        (spec.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
        and set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and (spec.get("volumeMode") or "Filesystem") == (wanted.get("volumeMode") or "Filesystem")
        and (not selector or selects(selector, volume["metadata"].get("labels") or {}))
        and _capacity(volume) >= quantities.parse(_requested(claim))
    )


def claim_reference(claim: Object) -> Object:
    """A volume's reference to its claim."""
    metadata = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _requested(claim: Object) -> str:
    return str(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _capacity(volume: Object) -> Fraction:
    return quantities.parse((volume["spec"].get("capacity") or {}).get("storage", "0"))


def _claims_of_pod(pod: Object) -> list[tuple[str, str]]:
    namespace = pod["metadata"]["namespace"]
    return [
        (namespace, volume["persistentVolumeClaim"]["claimName"])
        for volume in pod["spec"].get("volumes") or ()
        if volume.get("persistentVolumeClaim")
    ]
