"""CSI volumes as scalars: what pods attach and how much nodes can (spec 04 sections 9.3 and 17).

A pod asks for one ``attachable-volumes-csi-<driver>`` per claim, a node has as many as its CSINode says. So queues can
limit volumes, and their amounts tell how many are in use. What a pod asks for follows from claims, volumes and storage
classes, which arrive when they like: pods whose answer may have changed are named by :meth:`Attachments.stale_tasks`.

Only scalars that some pod asks for are put on nodes. A driver that no CSINode names limits nobody: its claims are
served by something that attaches nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from stromboli.api import core, resourcenames
from stromboli.scheduler.core.objects import ClusterObjects, Key
from stromboli.scheduler.core.records import Attached, Task
from stromboli.scheduler.core.volumes import NO_PROVISIONER, claim_names, has_claims

IGNORED = ("rancher.io/local-path", "hostpath.csi.k8s.io")
"""Drivers that attach nothing; ``--ignored-provisioners`` names more (spec 04 section 9.3)."""
UNLIMITED = float(2**31 - 1)
"""What a node has of a driver without a limit (spec 04 section 17)."""

_DRIVER_PARAMETER = "csi.storage.k8s.io/csi-driver-name"


class Attachments:
    """Which pods attach what, and which nodes can attach how much; fed by the mirror."""

    def __init__(self, objects: ClusterObjects, ignored: Iterable[str] = ()) -> None:
        self._objects = objects
        self._ignored = frozenset((*IGNORED, NO_PROVISIONER, *ignored))
        self._users: dict[Key, dict[str, Task]] = {}
        """Tasks by UID, by the claim they use."""
        self._stale: dict[str, Task] = {}
        self._limits: dict[str, Mapping[str, float]] = {}
        """Scalars of every driver by node name."""
        self._named_by: Counter[str] = Counter()
        """Nodes by scalar."""
        self._asked: set[str] = set()
        """Scalars that some pod has asked for."""
        self._nodes: set[str] = set()
        self._all_nodes = False

    def of(self, pod: core.Pod, uid: str) -> Attached:
        """The scalars that a pod of this UID asks for with their numbers, sorted.

        Claims that are not known (yet) count nothing: ``predicates`` says that they are missing.
        """
        if not has_claims(pod.spec.volumes):
            return ()
        found: Counter[str] = Counter()
        for name, ephemeral in claim_names(pod.name, pod.spec.volumes):
            claim = self._objects.get(core.PersistentVolumeClaim, name, pod.namespace)
            if claim is None or (ephemeral and all(owner.uid != uid for owner in claim.metadata.owner_references)):
                continue
            driver = driver_of(claim, self._objects)
            if driver and driver not in self._ignored:
                found[resourcenames.csi_attach_limit(driver)] += 1
        self._ask(found)
        return tuple(sorted(found.items()))

    def _ask(self, scalars: Iterable[str]) -> None:
        new = set(scalars) - self._asked
        if new:
            self._asked |= new
            self._all_nodes = True

    # Tasks

    def joined(self, task: Task) -> None:
        """A task is known from now on."""
        for key in _claim_keys(task.shape.pod):
            self._users.setdefault(key, {})[task.uid] = task

    def left(self, task: Task) -> None:
        """The reverse of :meth:`joined`."""
        self._stale.pop(task.uid, None)
        for key in _claim_keys(task.shape.pod):
            users = self._users.get(key, {})
            users.pop(task.uid, None)
            if not users:
                self._users.pop(key, None)

    def stale_tasks(self) -> list[Task]:
        """Tasks whose scalars must be worked out again; each is named once."""
        stale = list(self._stale.values())
        self._stale.clear()
        return stale

    # Objects

    def notice(self, obj: core.Object) -> None:
        """An object was added, changed or removed, and the store knows."""
        match obj:
            case core.PersistentVolumeClaim():
                self._stale.update(self._users.get(obj.key, {}))
            case core.PersistentVolume():
                reference = obj.spec.claim_ref
                if reference is not None:
                    self._stale.update(self._users.get((reference.namespace, reference.name), {}))
            case core.StorageClass():
                for users in self._users.values():
                    self._stale.update(users)
            case core.CSINode():
                self._notice_node(obj.name)

    def _notice_node(self, name: str) -> None:
        csi_node = self._objects.get(core.CSINode, name)
        before, after = self._limits.pop(name, {}), limits_of(csi_node) if csi_node is not None else {}
        if before == after:
            self._limits[name] = after
            return
        named = {scalar for scalar in self._asked if self._named_by[scalar]}
        self._named_by.subtract(before.keys())
        self._named_by.update(after.keys())
        if after:
            self._limits[name] = after
        self._nodes.add(name)
        self._all_nodes |= named != {scalar for scalar in self._asked if self._named_by[scalar]}

    # Nodes

    def limits(self, node: str) -> dict[str, float]:
        """What a node has of the scalars that pods ask for."""
        known = self._limits.get(node, {})
        return {scalar: known.get(scalar, 0.0 if self._named_by[scalar] else UNLIMITED) for scalar in self._asked}

    def changed_nodes(self, known: Iterable[str]) -> list[str]:
        """Those of the nodes whose limits have changed since this was last asked."""
        changed, every = self._nodes, self._all_nodes
        self._nodes, self._all_nodes = set(), False
        return [name for name in known if every or name in changed] if every or changed else []


def driver_of(claim: core.PersistentVolumeClaim, objects: ClusterObjects) -> str:
    """The CSI driver of a claim's volume, or of the volume it will get; empty when there is none."""
    volume = objects.get(core.PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is not None:
        return volume.spec.csi.driver if volume.spec.csi is not None else ""
    class_ = objects.get(core.StorageClass, claim.spec.storage_class_name or "")
    return class_.parameters.get(_DRIVER_PARAMETER) or class_.provisioner if class_ is not None else ""


def limits_of(csi_node: core.CSINode) -> dict[str, float]:
    """How many volumes of each driver a node can attach, by scalar."""
    found = {}
    for driver in csi_node.spec.drivers:
        count = driver.allocatable.count if driver.allocatable is not None else None
        found[resourcenames.csi_attach_limit(driver.name)] = UNLIMITED if count is None else float(max(count, 0))
    return found


def _claim_keys(pod: core.Pod) -> Iterator[Key]:
    # An ephemeral claim is called after its pod: pods that have one never share a shape.
    for name, _ in claim_names(pod.name, pod.spec.volumes):
        yield pod.namespace, name
