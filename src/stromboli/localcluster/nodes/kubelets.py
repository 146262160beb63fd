"""The kubelets of all simulated nodes in one task: pods bound to a node live, end and stop as their annotations say.

The decisions are :mod:`stromboli.localcluster.nodes.lifecycles`; here is only what watches pods, waits for due times
and writes. A pod is looked at when it appears, when somebody changes what it is told, and when its next change is due.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections.abc import Callable
from typing import TypeAlias

from stromboli.api import kinds
from stromboli.localcluster.nodes.lifecycles import FINISHED, Placement, Settings, advance, stop_at
from stromboli.localcluster.nodes.timers import Timers
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.requests import DeleteOptions
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Event, Gone, Key, Object

log = logging.getLogger(__name__)

PodKey: TypeAlias = tuple[str, str, str]
"""Namespace, name and UID."""

BATCH = 25
"""Pods looked at before others get a turn (about 10 ms)."""
POD_NETWORK = ipaddress.ip_network("10.64.0.0/10")
"""Where simulated pods have their addresses; nothing listens there."""
RETRY_SECONDS = 0.2
UNMANAGED = "simulation.stromboli.dev/unmanaged"
"""Annotation of a Node (``true``) whose pods and heartbeats somebody else takes care of."""


class Addresses:
    """Hands out addresses of the pod network in turn; a pod that has one keeps it."""

    def __init__(self) -> None:
        self._count = 0

    def pod_ip(self, pod: Object) -> str:
        """The address of a pod."""
        present = (pod.get("status") or {}).get("podIP")
        if present:
            return str(present)
        self._count = self._count % ((1 << 22) - 2) + 1
        return f"10.{64 + (self._count >> 16)}.{(self._count >> 8) & 255}.{self._count & 255}"

    def seen(self, pod: Object) -> None:
        """Start behind an address that is in use (after a restart from a state file)."""
        parts = str((pod.get("status") or {}).get("podIP") or "").split(".")
        if len(parts) == 4 and parts[0] == "10" and all(part.isdigit() for part in parts):
            used = ((int(parts[1]) - 64) << 16) + (int(parts[2]) << 8) + int(parts[3])
            self._count = max(self._count, min(used, (1 << 22) - 2))


class Kubelets:
    """Lives the pods' lives. ``now`` tells seconds since the epoch."""

    def __init__(self, registry: Registry, settings: Settings, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._settings = settings
        self._now = now
        self._timers: Timers[PodKey] = Timers(now)
        self._addresses = Addresses()

    async def run(self) -> None:
        """Watch and act; ends only by cancellation."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            group.create_task(self._act())

    async def step(self) -> int:
        """Do what is due now; how many pods were looked at."""
        due = self._timers.pop_due(BATCH)
        for key in due:
            try:
                await self._look(key)
            except StatusError as error:
                if error.reason == "NotFound":
                    continue
                log.log(
                    logging.DEBUG if error.reason == "Conflict" else logging.WARNING, "pod %s/%s: %s", *key[:2], error
                )
                self._timers.set(key, self._now() + RETRY_SECONDS)
            except Exception:
                log.exception("pod %s/%s cannot be simulated", *key[:2])
        return len(due)

    def observe(self, pod: Object, before: Object | None = None) -> None:
        """Take note of a pod that appeared or changed."""
        if not pod["spec"].get("nodeName"):
            return
        metadata = pod["metadata"]
        key = (metadata["namespace"], metadata["name"], metadata["uid"])
        stop = stop_at(pod, self._settings)
        if stop is not None:
            self._timers.set(key, stop)
        elif (pod.get("status") or {}).get("phase") in FINISHED:
            self._timers.cancel(key)
        elif key not in self._timers or (before is not None and _told(before) != _told(pod)):
            self._timers.set(key, self._now())

    def forget(self, pod: Object) -> None:
        """A pod that is gone."""
        metadata = pod["metadata"]
        self._timers.cancel((metadata["namespace"], metadata["name"], metadata["uid"]))

    async def _watch(self) -> None:
        while True:
            watch = self._registry.watch(kinds.PODS)
            for stored in self._registry.store.list(kinds.PODS):
                self._addresses.seen(stored.object)
                self._note(stored.object, None)
            try:
                while True:
                    for event in await watch.batch():
                        self._handle(event)
            except Gone:
                log.info("the simulated kubelets fell behind; listing pods again")

    def _handle(self, event: Event) -> None:
        if event.type == "DELETED":
            self.forget(event.stored.object)
        else:
            self._note(event.stored.object, event.old.object if event.old else None)

    def _note(self, pod: Object, before: Object | None) -> None:
        """Observe a pod; one that makes no sense is passed over."""
        try:
            self.observe(pod, before)
        except Exception:
            log.exception("pod %s cannot be simulated", pod["metadata"]["name"])

    async def _act(self) -> None:
        while True:
            await self._timers.wait_due()
            await self.step()
            await asyncio.sleep(0)  # the registry rarely waits for anything: let requests in between

    async def _look(self, key: PodKey) -> None:
        namespace, name, uid = key
        stored = self._registry.store.get(Key.of(kinds.PODS, namespace, name))
        if stored is None or stored.object["metadata"]["uid"] != uid:
            return
        pod = stored.object
        node = self._registry.store.get(Key.of(kinds.NODES, None, pod["spec"]["nodeName"]))
        if node is not None and unmanaged(node.object):
            return
        stop = stop_at(pod, self._settings)
        if stop is not None:
            await self._stop(key, stop)
            return
        if node is None:
            return
        placement = Placement(self._addresses.pod_ip(pod), node_ip(node.object))
        result = advance(pod, self._now(), self._settings, placement)
        if result.status is not None:
            await self._registry.update(kinds.PODS, {**pod, "status": result.status}, namespace, subresource="status")
        if result.next_at is not None:
            self._timers.set(key, result.next_at)

    async def _stop(self, key: PodKey, when: float) -> None:
        if when > self._now():
            self._timers.set(key, when)
            return
        await self._registry.delete(kinds.PODS, key[0], key[1], DeleteOptions(grace_period=0, uid=key[2]))


def unmanaged(node: Object) -> bool:
    """Whether a Node is not simulated here."""
    return (node["metadata"].get("annotations") or {}).get(UNMANAGED) == "true"


def node_ip(node: Object) -> str:
    """The node's internal address."""
    for address in (node.get("status") or {}).get("addresses") or ():
        if address.get("type") == "InternalIP":
            return str(address["address"])
    return "127.0.0.1"


def _told(pod: Object) -> object:
    """What decides about a pod's life and can change."""
    spec = pod["spec"]
    return pod["metadata"].get("annotations"), spec.get("nodeName"), spec.get("activeDeadlineSeconds")
