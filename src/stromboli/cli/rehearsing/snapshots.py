"""A snapshot: what scheduling reads of a cluster at one moment, as one JSON file.

Objects go through the hot structs of ``api.core``, so that environment variables, commands, images of containers,
managed fields and everything else that scheduling does not read never get into the file; annotations of kubectl, which
repeat whole manifests, are taken out as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from stromboli.api import core, kinds
from stromboli.api.kinds import Kind
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.errors import CommandError
from stromboli.cli.rehearsing import members
from stromboli.kube import json
from stromboli.kube.errors import Forbidden, NotFound
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.mirror import Mirror

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
    kinds.POD_DISRUPTION_BUDGETS: core.PodDisruptionBudget,
    kinds.NUMATOPOLOGIES: core.Numatopology,
}
"""Kinds in a snapshot, in the order in which a mirror is best fed."""
REQUIRED = (kinds.NODES, kinds.QUEUES, kinds.POD_GROUPS, kinds.PODS)
_KINDS = {struct: kind for kind, struct in STRUCTS.items()}


class NotAllowed(CommandError):
    """What a snapshot cannot do without may not be listed."""


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
    missing: tuple[str, ...] = field(default=())
    """Resources that could not be read, and why."""

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

    def mirror(self) -> Mirror:
        """A scheduler's mirror of the snapshot."""
        mirror = Mirror()
        for obj in self.objects:
            if not isinstance(obj, core.Pod) or self._is_ours(obj):
                feed(mirror, obj)
        return mirror

    def _is_ours(self, pod: core.Pod) -> bool:
        """Whether a pod counts: it takes room on a node, or waits for this scheduler."""
        return bool(pod.spec.node_name) or pod.spec.scheduler_name in self.scheduler_names

    def encode(self) -> bytes:
        """The file's content."""
        listed: dict[str, list[dict[str, object]]] = {}
        for obj in self.objects:
            listed.setdefault(_KINDS[type(obj)].resource, []).append(core.to_builtins(obj))
        return msgspec.json.encode(
            {
                "format": FORMAT,
                "taken": self.taken,
                "schedulerNames": self.scheduler_names,
                "policy": self.policy,
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
        case _:
            mirror.apply_object(obj)


def decode(content: bytes, where: str = "snapshot") -> Snapshot:
    """Read a file's content. Raises CommandError naming what is wrong."""
    try:
        document = json.decode_object(content)
    except ValueError as error:
        raise CommandError(f"{where} is not a snapshot: {error}; make one with 'vcctl snapshot FILE'") from error
    if document.get("format") != FORMAT:
        raise CommandError(
            f"{where}: format is {document.get('format')!r}, expected {FORMAT!r}; make one with 'vcctl snapshot FILE'"
        )
    try:
        return Snapshot(
            taken=float(document["taken"]),
            objects=tuple(_objects(document.get("objects") or {})),
            awaited=tuple(core.from_builtins(core.Pod, item) for item in document.get("awaited") or []),
            policy=str(document.get("policy") or ""),
            scheduler_names=tuple(document.get("schedulerNames") or ("volcano",)),
            missing=tuple(document.get("missing") or ()),
        )
    except (core.UndecodableObject, KeyError, TypeError, ValueError) as error:
        raise CommandError(f"{where} is not a snapshot: {error}") from error


def _objects(listed: JsonObject) -> Iterator[core.Object]:
    for kind, struct in STRUCTS.items():
        for item in listed.get(kind.resource) or []:
            yield core.from_builtins(struct, item)


def read(path: Path) -> Snapshot:
    """Read a snapshot file. Raises CommandError."""
    try:
        return decode(path.read_bytes(), str(path))
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror or error}") from error


def gather(
    api: Api, *, policy: str = "", kinds_wanted: Sequence[Kind] = tuple(STRUCTS), clock: Callable[[], float] = time.time
) -> Snapshot:
    """Read a snapshot from a cluster. What a user may not list is left out and named in ``missing``.

    Raises:
        NotAllowed: nodes, queues, PodGroups or pods may not be listed, without which nothing can be said.
    """
    objects: list[core.Object] = []
    missing: list[str] = []
    for kind in kinds_wanted:
        try:
            found = api.list(kind)
        except NotFound:
            continue
        except Forbidden as error:
            if kind in REQUIRED:
                raise NotAllowed(f"what the cluster would do cannot be worked out: {error.message}") from error
            missing.append(f"{kind.resource}: {error.message}")
            continue
        objects.extend(_readable(kind, found, missing))
    awaited = _awaited(api, objects, missing)
    return Snapshot(clock(), tuple(objects), tuple(awaited), policy, missing=tuple(missing))


def _readable(kind: Kind, found: Iterable[JsonObject], missing: list[str]) -> Iterator[core.Object]:
    for obj in found:
        try:
            yield core.from_builtins(STRUCTS[kind], _reduced(obj))
        except core.UndecodableObject as error:
            missing.append(f"{kind.resource} {'/'.join(json.key_of(obj))}: {error}")


def _reduced(obj: JsonObject) -> JsonObject:
    meta = json.metadata(obj)
    notes = meta.get("annotations")
    if not isinstance(notes, dict):
        return obj
    kept = {key: value for key, value in notes.items() if not str(key).startswith(KUBECTL_ANNOTATIONS)}
    return {**obj, "metadata": {**meta, "annotations": kept}}


def _awaited(api: Api, objects: Sequence[core.Object], missing: list[str]) -> Iterator[core.Pod]:
    """Pods that the controller will make for vcjobs whose PodGroup is there and whose pods are not."""
    groups = {group.key for group in objects if isinstance(group, core.PodGroup)}
    present = {(pod.namespace, pod.name) for pod in objects if isinstance(pod, core.Pod)}
    priorities = [item for item in objects if isinstance(item, core.PriorityClass)]
    try:
        jobs = api.list(kinds.JOBS)
    except (Forbidden, NotFound) as error:
        missing.append(f"{kinds.JOBS.resource}: {error.message}")
        return
    for job in jobs:
        if (job.get("status") or {}).get("state", {}).get("phase", "Pending") != "Pending":
            continue
        for pod in members.pods(job, priorities):
            known = (pod.namespace, pod.metadata.annotations[members.GROUP]) in groups
            if known and pod.key not in present:
                yield pod
