"""A snapshot: what scheduling reads of a cluster at one moment, as one JSON document, and back into a mirror.

Objects go through the hot structs of ``api.core``, so that environment variables, commands, managed fields and
everything else that scheduling does not read never get into the document; annotations of kubectl, which repeat whole
manifests, parameters of device drivers and templates of workloads are taken out as well (:func:`reduced`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from stromboli.api import core, kinds, names
from stromboli.api.kinds import Kind
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.shards import nodes_of

StructT = TypeVar("StructT", bound=core.Struct)

FORMAT = "stromboli-snapshot/1"
KUBECTL_ANNOTATIONS = "kubectl.kubernetes.io/"

STRUCTS: dict[Kind, type[core.Object]] = {
    kinds.PRIORITY_CLASSES: core.PriorityClass,
    kinds.NODES: core.Node,
    kinds.QUEUES: core.Queue,
    kinds.POD_GROUPS: core.PodGroup,
    kinds.PODS: core.Pod,
    kinds.HYPER_NODES: core.HyperNode,
    kinds.NAMESPACES: core.Namespace,
    kinds.SERVICES: core.Service,
    kinds.RESOURCE_QUOTAS: core.ResourceQuota,
    kinds.PERSISTENT_VOLUMES: core.PersistentVolume,
    kinds.PERSISTENT_VOLUME_CLAIMS: core.PersistentVolumeClaim,
    kinds.STORAGE_CLASSES: core.StorageClass,
    kinds.CSI_NODES: core.CSINode,
    kinds.CSI_DRIVERS: core.CSIDriver,
    kinds.CSI_STORAGE_CAPACITIES: core.CSIStorageCapacity,
    kinds.VOLUME_ATTACHMENTS: core.VolumeAttachment,
    kinds.POD_DISRUPTION_BUDGETS: core.PodDisruptionBudget,
    kinds.NUMATOPOLOGIES: core.Numatopology,
    kinds.REPLICATION_CONTROLLERS: core.ReplicationController,
    kinds.REPLICA_SETS: core.ReplicaSet,
    kinds.STATEFUL_SETS: core.StatefulSet,
    kinds.DEVICE_CLASSES: core.DeviceClass,
    kinds.RESOURCE_SLICES: core.ResourceSlice,
    kinds.RESOURCE_CLAIMS: core.ResourceClaim,
    kinds.DEVICE_TAINT_RULES: core.DeviceTaintRule,
    kinds.NODE_SHARDS: core.NodeShard,
}
"""Kinds that a session reads, in the order in which a mirror is best fed."""

TEMPLATES: dict[Kind, type[core.Object]] = {kinds.RESOURCE_CLAIM_TEMPLATES: core.ResourceClaimTemplate}
"""Kinds that no session reads, and of which those who rehearse make what pods to come will have."""

_ALL = {**STRUCTS, **TEMPLATES}
_KINDS = {struct: kind for kind, struct in _ALL.items()}


class SnapshotError(ValueError):
    """A document is no snapshot; the text names what is wrong and where."""


@dataclass(frozen=True)
class Snapshot:
    """Objects at one moment. ``awaited`` are pods that do not exist yet: those of vcjobs that were not admitted."""

    taken: float
    """Seconds since the epoch."""
    objects: tuple[core.Object, ...]
    awaited: tuple[core.Pod, ...] = ()
    policy: str = ""
    """The policy file that was in force, if it is known."""
    scheduler_names: tuple[str, ...] = ("volcano",)
    options: Mapping[str, object] = field(default_factory=dict)
    """Options of the scheduler's process that a session depends on, if they are known."""
    missing: tuple[str, ...] = ()
    """What could not be read, and why."""

    def of(self, struct: type[core.Object]) -> Iterator[Any]:
        """The objects of one kind."""
        return (obj for obj in self.objects if type(obj) is struct)

    def with_objects(self, *more: core.Object, awaited: Iterable[core.Pod] = ()) -> Snapshot:
        """This snapshot and more objects; those of a kind and name that is there already replace it."""
        replaced = {(type(obj), obj.key) for obj in more}
        kept = tuple(obj for obj in self.objects if (type(obj), obj.key) not in replaced)
        return replace(self, objects=(*kept, *more), awaited=(*self.awaited, *awaited))

    def without_work(self) -> Snapshot:
        """The same cluster with no pods and no PodGroups."""
        kept = tuple(obj for obj in self.objects if not isinstance(obj, core.Pod | core.PodGroup))
        return replace(self, objects=kept, awaited=())

    @property
    def shard_mode(self) -> str:
        """How the scheduler keeps to its shard: ``hard``, ``soft`` or ``none``."""
        mode = self.options.get("scheduler-sharding-mode")
        return mode if mode in ("hard", "soft") else "none"

    @property
    def shard(self) -> frozenset[str] | None:
        """Names of the nodes of the scheduler's shard, none when there is no such shard; None when it has all."""
        if self.shard_mode == "none":
            return None
        return nodes_of(str(self.options.get("scheduler-sharding-name")), self.of(core.NodeShard)) or frozenset()

    def mirror(self) -> Mirror:
        """A mirror of the snapshot."""
        ignored, queue = self.options.get("ignored-provisioners"), self.options.get("default-queue")
        mirror = Mirror(
            str(queue or names.DEFAULT_QUEUE),
            ignored_provisioners=ignored if isinstance(ignored, list | tuple) else (),
        )
        for obj in self.objects:
            if not isinstance(obj, core.Pod) or self._is_ours(obj):
                feed(mirror, obj)
        return mirror

    def _is_ours(self, pod: core.Pod) -> bool:
        """Whether a pod counts: it takes room on a node, or waits for this scheduler."""
        return bool(pod.spec.node_name) or pod.spec.scheduler_name in self.scheduler_names

    def encode(self) -> bytes:
        """The document."""
        listed: dict[str, list[dict[str, object]]] = {}
        for obj in self.objects:
            listed.setdefault(_KINDS[type(obj)].resource, []).append(core.to_builtins(obj))
        return msgspec.json.encode(
            {
                "format": FORMAT,
                "taken": self.taken,
                "schedulerNames": self.scheduler_names,
                "policy": self.policy,
                "options": self.options,
                "missing": self.missing,
                "objects": listed,
                "awaited": [core.to_builtins(pod) for pod in self.awaited],
            }
        )


def feed(mirror: Mirror, obj: core.Object) -> None:
    """Deliver an object to a mirror as its watch would."""
    match obj:
        case core.Pod():
            mirror.apply_pod(obj)
        case core.Node():
            mirror.apply_node(obj)
        case core.PodGroup():
            mirror.apply_pod_group(obj)
        case core.Queue():
            mirror.apply_queue(obj)
        case core.PriorityClass():
            mirror.apply_priority_class(obj)
        case core.HyperNode():
            mirror.apply_hyper_node(obj)
        case core.ResourceClaimTemplate():
            pass
        case _:
            mirror.apply_object(obj)


def reduced(obj: core.Object) -> core.Object:
    """The object without what scheduling does not read of it, and without annotations that repeat its manifest."""
    bare = _without_parameters(obj)
    notes = bare.metadata.annotations
    kept = {key: value for key, value in notes.items() if not key.startswith(KUBECTL_ANNOTATIONS)}
    if len(kept) == len(notes):
        return bare
    return _with(bare, metadata=_with(bare.metadata, annotations=kept))


def _without_parameters(obj: core.Object) -> core.Object:
    match obj:
        case core.DeviceClass():
            return _with(obj, spec=_with(obj.spec, config=()))
        case core.ResourceClaim():
            return _with(obj, spec=_bare_claim(obj.spec), status=_bare_status(obj.status))
        case core.ResourceClaimTemplate():
            return _with(obj, spec=_with(obj.spec, spec=_bare_claim(obj.spec.spec)))
        case core.ReplicaSet() | core.StatefulSet():
            return _with(obj, spec=core.WorkloadSpec(selector=obj.spec.selector))
        case _:
            return obj


def _bare_claim(spec: core.ResourceClaimSpec) -> core.ResourceClaimSpec:
    return _with(spec, devices=_with(spec.devices, config=()))


def _bare_status(status: core.ResourceClaimStatus) -> core.ResourceClaimStatus:
    given = status.allocation
    return status if given is None else _with(status, allocation=_with(given, devices=_with(given.devices, config=())))


def _with(struct: StructT, **changes: object) -> StructT:
    return msgspec.structs.replace(struct, **changes)


def decode(content: bytes) -> Snapshot:
    """Read a document. Raises SnapshotError."""
    try:
        document = msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise SnapshotError(f"is not a snapshot: {error}") from error
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise SnapshotError(f"is not a snapshot: format is {found!r}, expected {FORMAT!r}")
    try:
        return Snapshot(
            taken=float(document["taken"]),
            objects=tuple(_objects(document.get("objects") or {})),
            awaited=tuple(core.from_builtins(core.Pod, item) for item in document.get("awaited") or []),
            policy=str(document.get("policy") or ""),
            scheduler_names=tuple(document.get("schedulerNames") or ("volcano",)),
            options=dict(document.get("options") or {}),
            missing=tuple(document.get("missing") or ()),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise SnapshotError(f"is not a snapshot: {error}") from error


def _objects(listed: dict[str, Any]) -> Iterator[core.Object]:
    for kind, struct in _ALL.items():
        for item in listed.get(kind.resource) or []:
            yield core.from_builtins(struct, item)
