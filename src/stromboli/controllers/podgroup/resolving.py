"""Finding the gang that a pod belongs to, by asking the server for its owners.

Three cases, in this order: the pod names a PodGroup of Kubernetes' own (``spec.schedulingGroup``), which says how many
pods there must be; or it names a queue and one of its owners is in the table of :mod:`.gangs`; or neither.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stromboli.api import kinds, names
from stromboli.api.core import OwnerReference, Pod, to_builtins
from stromboli.api.kinds import Kind
from stromboli.controllers.podgroup import gangs
from stromboli.controllers.podgroup.gangs import GangKind, GangSize
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.errors import Forbidden, NotFound
from stromboli.kube.json import JsonObject

log = logging.getLogger(__name__)

DEEPEST: Final = 6
NATIVE_VERSIONS: Final = ("v1beta1", "v1alpha2")
"""Versions of ``scheduling.k8s.io`` whose PodGroups are understood, the newest first."""


class NotYet(Exception):
    """What a pod refers to does not exist yet; nothing announces when it does."""


@dataclass(frozen=True, slots=True)
class Gang:
    """The PodGroup that a pod is to have: its name, its owner, its size, and annotations of that owner."""

    name: str
    owner: JsonObject
    size: GangSize
    annotations: Mapping[str, str]


class Resolver:
    """Finds gangs."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def gang(self, pod: Pod) -> Gang | None:
        """The gang of a pod; None when its direct owner is all there is to it.

        Raises:
            NotYet: the pod refers to a group that is not there.
            KubeError: an owner could not be read.
        """
        if pod.spec.scheduling_group is not None:
            return await self._native(pod.namespace, pod.spec.scheduling_group.pod_group_name)
        if not pod.metadata.annotations.get(names.POD_QUEUE_NAME) or pod.controller is None:
            return None
        return await self._of_owners(pod, pod.controller)

    async def _native(self, namespace: str, name: str) -> Gang:
        for version in NATIVE_VERSIONS:
            kind = Kind("scheduling.k8s.io", version, "podgroups", "PodGroup")
            try:
                found = await self._client.get(kind, name, namespace)
            except NotFound:
                continue
            gang = ((found.get("spec") or {}).get("schedulingPolicy") or {}).get("gang") or {}
            size = GangSize(max(1, int(gang.get("minCount") or 1)))
            return _gang(_reference(kind, found), found, size)
        raise NotYet(f"scheduling.k8s.io PodGroup {namespace}/{name} does not exist yet")

    async def _of_owners(self, pod: Pod, direct: OwnerReference) -> Gang | None:
        """Climb from owner to owner; the topmost that is in the table counts."""
        found: Gang | None = None
        leader, owner = _reference_to_pod(pod.name, pod.uid), to_builtins(direct)
        for _ in range(DEEPEST):
            known = gangs.table().get((str(owner.get("apiVersion")), str(owner.get("kind"))))
            kind = known.kind if known else gangs.stepping_stone(str(owner.get("apiVersion")), str(owner.get("kind")))
            above = await self._read(kind, pod.namespace, owner) if kind else None
            if kind is None or above is None:
                break
            if known is not None:
                found = _sized(known, above, leader) or found
            leader = _reference(kind, above) if kind == kinds.PODS else leader
            owners: Sequence[JsonObject] = json.metadata(above).get("ownerReferences") or ()
            owner = next((one for one in owners if one.get("controller")), {})
        return found

    async def _read(self, kind: Kind, namespace: str, owner: Mapping[str, Any]) -> JsonObject | None:
        """An owner, if it is still the one that is meant."""
        try:
            found = await self._client.get(kind, str(owner.get("name")), namespace)
        except NotFound:
            return None
        except Forbidden as error:
            log.warning("%s cannot be read, its pods are not taken for a gang: %s", kind.resource, error)
            return None
        return found if json.uid_of(found) == owner.get("uid") else None


def _sized(known: GangKind, owner: JsonObject, leader: JsonObject) -> Gang | None:
    """The gang of an owner; None when its size makes no sense."""
    try:
        size = known.size(owner)
    except Exception as error:  # the object is anybody's, and so may be the code that reads it
        log.warning("%s %s/%s: no gang can be made of it: %s", known.kind.kind, *json.key_of(owner), error)
        return None
    return _gang(leader if known.per_leader else _reference(known.kind, owner), owner, size)


def _gang(owner: JsonObject, described_by: JsonObject, size: GangSize) -> Gang:
    annotations = json.metadata(described_by).get("annotations") or {}
    return Gang(names.bare_pod_group_name(owner["uid"]), owner, size, annotations)


def _reference(kind: Kind, obj: JsonObject) -> JsonObject:
    named = {"apiVersion": kind.api_version, "kind": kind.kind, "name": json.key_of(obj)[1], "uid": json.uid_of(obj)}
    return {**named, "controller": True}


def _reference_to_pod(name: str, uid: str) -> JsonObject:
    return _reference(kinds.PODS, {"metadata": {"name": name, "uid": uid}})
