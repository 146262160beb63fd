"""Keeps simulated nodes alive: addresses, conditions and node info once, and Leases renewed by one task for all.

Leases are written straight to the store: a thousand of them every few seconds are no business of admission, and a Lease
that nobody else touches needs no checks.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Sequence

from stromboli.api import kinds
from stromboli.localcluster.nodes.kubelets import unmanaged
from stromboli.localcluster.nodes.timestamps import micro_stamp, stamp
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Gone, Key, Object, StorageError

log = logging.getLogger(__name__)

RENEW_SECONDS = 20.0
LEASE_SECONDS = 40
LEASE_NAMESPACE = "kube-node-lease"
NOT_READY = "simulation.stromboli.dev/not-ready"
"""Annotation of a Node (``true``) that is to look broken: Ready is Unknown and its Lease is no longer renewed."""
_NOT_READY_TAINT = "node.kubernetes.io/not-ready"
_CORDONED_TAINT = "node.kubernetes.io/unschedulable"

_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


async def create_nodes(registry: Registry, nodes: Sequence[Object]) -> None:
    """Create the nodes that do not exist yet; those that do are left as they are."""
    for node in nodes:
        name = node["metadata"]["name"]
        if registry.store.get(Key.of(kinds.NODES, None, name)) is not None:
            continue
        created = await registry.create(kinds.NODES, node)
        if node.get("status") and created.get("status") != node["status"]:
            await registry.update(kinds.NODES, {**created, "status": node["status"]}, subresource="status")


class Heartbeats:
    """Node status and Leases of all simulated nodes. ``now`` tells seconds since the epoch."""

    def __init__(self, registry: Registry, version: str, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._version = version
        self._now = now

    async def run(self) -> None:
        """Watch nodes and renew Leases; ends only by cancellation."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._renew())

    def renew(self) -> None:
        """Renew every node's Lease once."""
        for stored in self._registry.store.list(kinds.NODES):
            node = stored.object
            if not unmanaged(node) and not _broken(node):
                self._renew_one(node)

    async def settle(self, node: Object) -> None:
        """Give a node the status and taints it should have."""
        if unmanaged(node):
            return
        tainted = with_taints(node)
        if tainted != node:
            node = await self._registry.update(kinds.NODES, tainted)
        status = node_status(node, self._version, self._now())
        if status != node.get("status"):
            await self._registry.update(kinds.NODES, {**node, "status": status}, subresource="status")

    async def _watch(self) -> None:
        while True:
            watch = self._registry.watch(kinds.NODES)
            for stored in self._registry.store.list(kinds.NODES):
                await self._settle(stored.key)
            self.renew()
            try:
                while True:
                    for event in await watch.batch():
                        if event.type == "DELETED":
                            self._drop_lease(event.stored.key.name)
                        else:
                            await self._settle(event.stored.key)
            except Gone:
                log.info("the node heartbeats fell behind; listing nodes again")

    async def _settle(self, key: Key) -> None:
        for _ in range(3):
            stored = self._registry.store.get(key)
            if stored is None:
                return
            try:
                await self.settle(stored.object)
                return
            except StatusError as error:
                if error.reason != "Conflict":
                    log.warning("node %s: %s", key.name, error)
                    return
            except Exception:
                log.exception("node %s cannot be simulated", key.name)
                return

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            self.renew()

    def _renew_one(self, node: Object) -> None:
        name = node["metadata"]["name"]
        key = Key.of(kinds.LEASES, LEASE_NAMESPACE, name)
        present = self._registry.store.get(key)
        try:
            if present is None:
                self._registry.store.create(key, self._new_lease(node))
            else:
                lease = present.object
                spec = {**lease["spec"], "renewTime": micro_stamp(self._now())}
                self._registry.store.replace(key, {**lease, "spec": spec})
        except StorageError as error:
            log.warning("lease of node %s: %s", name, error)

    def _new_lease(self, node: Object) -> Object:
        metadata = node["metadata"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata["uid"]}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": metadata["name"],
                "namespace": LEASE_NAMESPACE,
                "uid": str(uuid.uuid4()),
                "creationTimestamp": stamp(self._now()),
                "ownerReferences": [owner],
            },
            "spec": {
                "holderIdentity": metadata["name"],
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": micro_stamp(self._now()),
            },
        }

    def _drop_lease(self, name: str) -> None:
        key = Key.of(kinds.LEASES, LEASE_NAMESPACE, name)
        if self._registry.store.get(key) is not None:
            self._registry.store.remove(key)


def node_status(node: Object, version: str, now: float) -> Object:
    """The status of a simulated node: what is there, completed; transition times move only with a condition."""
    status: Object = dict(node.get("status") or {})
    capacity = dict(status.get("capacity") or {})
    status["capacity"] = capacity
    status["allocatable"] = dict(status.get("allocatable") or capacity)
    status.setdefault("addresses", _addresses(node))
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 10250}})
    status["nodeInfo"] = {**_node_info(node, version), **(status.get("nodeInfo") or {})}
    if _broken(node):
        ready = ("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    else:
        ready = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
    status["conditions"] = _conditions(status.get("conditions") or (), ready, now)
    return status


def _conditions(present: Sequence[Object], ready: tuple[str, str, str, str], now: float) -> list[Object]:
    """What is there stays, but for Ready when our own annotation asks for another state than ours."""
    before = {condition["type"]: condition for condition in present}
    for kind, truth, reason, message in (*_CONDITIONS, ready):
        known = before.get(kind)
        ours = known is not None and known.get("reason") in ("NodeStatusUnknown", "KubeletReady")
        if known is None or (kind == "Ready" and ours and known.get("reason") != reason):
            before[kind] = {
                "type": kind,
                "status": truth,
                "lastHeartbeatTime": stamp(now),
                "lastTransitionTime": stamp(now),
                "reason": reason,
                "message": message,
            }
    return list(before.values())


def with_taints(node: Object) -> Object:
    """The node with the taints that follow from its state: cordoned, or made to look broken."""
    spec = node.get("spec") or {}
    present: list[Object] = spec.get("taints") or []
    wanted = _tainted(present, _CORDONED_TAINT, wanted=bool(spec.get("unschedulable")))
    if _broken(node) or _was_broken(node):
        wanted = _tainted(wanted, _NOT_READY_TAINT, wanted=_broken(node))
    if wanted == present:
        return node
    rest = {key: value for key, value in spec.items() if key != "taints"}
    return {**node, "spec": {**rest, "taints": wanted} if wanted else rest}


def _tainted(taints: Sequence[Object], key: str, *, wanted: bool) -> list[Object]:
    ours = [taint for taint in taints if taint.get("key") == key and taint.get("effect") == "NoSchedule"]
    if bool(ours) == wanted:
        return list(taints)
    return [*taints, {"key": key, "effect": "NoSchedule"}] if wanted else [one for one in taints if one not in ours]


def _broken(node: Object) -> bool:
    return (node["metadata"].get("annotations") or {}).get(NOT_READY) == "true"


def _was_broken(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one.get("reason") == "NodeStatusUnknown" for one in conditions)


def _addresses(node: Object) -> list[Object]:
    """A stable address out of 10.0.0.0/10 made from the name."""
    name = node["metadata"]["name"]
    number = uuid.uuid5(uuid.NAMESPACE_DNS, name).int % ((1 << 22) - 2) + 1
    address = f"10.{number >> 16}.{(number >> 8) & 255}.{number & 255}"
    return [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]


def _node_info(node: Object, version: str) -> Object:
    labels = node["metadata"].get("labels") or {}
    system = uuid.uuid5(uuid.NAMESPACE_DNS, node["metadata"]["name"])
    return {
        "architecture": labels.get("kubernetes.io/arch", "amd64"),
        "operatingSystem": labels.get("kubernetes.io/os", "linux"),
        "bootID": str(system),
        "machineID": system.hex,
        "systemUUID": str(system),
        "containerRuntimeVersion": "simulated://1",
        "kernelVersion": "simulated",
        "kubeProxyVersion": version,
        "kubeletVersion": version,
        "osImage": "Simulated",
    }
