"""A cluster without HTTP for tests: registry, admission, controllers, kubelets, and waiting for conditions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.admission.chain import AdmissionChain
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.bootstrap import bootstrap
from stromboli.localcluster.controllers.garbage import GarbageCollector
from stromboli.localcluster.controllers.namespaces import NamespaceController
from stromboli.localcluster.controllers.running import Controller, ControllerRunner
from stromboli.localcluster.extending import AdmissionRequest
from stromboli.localcluster.nodes.heartbeats import Heartbeats, create_nodes
from stromboli.localcluster.nodes.inventories import NodeGroup
from stromboli.localcluster.nodes.kubelets import Kubelets
from stromboli.localcluster.nodes.lifecycles import Settings
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.storage import Key, Object

WAIT_SECONDS = 10.0


class NoWebhooks:
    """Nobody is asked."""

    async def mutate(self, request: AdmissionRequest) -> None:
        return None

    async def validate(self, request: AdmissionRequest) -> None:
        return None


class Simulation:
    """What tests do with a running simulation."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.store = registry.store

    def find(self, kind: Kind, name: str, namespace: str = "default") -> Object | None:
        """The stored object, or None."""
        stored = self.store.get(Key.of(kind, namespace, name))
        return stored.object if stored else None

    def all(self, kind: Kind, namespace: str = "default") -> list[Object]:
        """All objects of a kind in a namespace."""
        return [stored.object for stored in self.store.list(kind, namespace if kind.namespaced else None)]

    async def create(self, obj: Object) -> Object:
        """Create from a manifest, in ``default`` unless it says otherwise."""
        served = self.registry.kinds.by_kind(obj["apiVersion"], obj["kind"])
        assert served is not None, obj["kind"]
        namespace = obj["metadata"].get("namespace", "default") if served.kind.namespaced else None
        return await self.registry.create(served.kind, obj, namespace)

    async def until(self, holds: Callable[[], object], what: str = "") -> None:
        """Wait until a condition on the store holds."""
        changed = asyncio.Event()
        self.store.add_listener(changed)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not holds():
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            raise AssertionError(f"waited in vain for {what or holds}") from None

    async def settled(self) -> None:
        """Wait until nothing has been written for a while; for showing that something does not happen."""
        changed = asyncio.Event()
        self.store.add_listener(changed)
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                changed.clear()
                try:
                    async with asyncio.timeout(0.15):
                        await changed.wait()
                except TimeoutError:
                    return


@asynccontextmanager
async def simulation(
    *controllers: Callable[[Registry], Controller],
    nodes: int = 0,
    garbage: bool = False,
    pods: Settings | None = None,
) -> AsyncIterator[Simulation]:
    """A bootstrapped registry with the given controllers at work; kubelets too when there are nodes."""
    registry = new_registry()
    registry.admission = AdmissionChain(registry.store, NoWebhooks())
    await bootstrap(registry, "CA")
    await create_nodes(registry, list(NodeGroup(nodes).nodes()))
    made: list[Controller] = [NamespaceController(registry, "CA"), *(make(registry) for make in controllers)]
    work: list[Any] = [ControllerRunner(registry, made).run()]
    if garbage:
        work.append(GarbageCollector(registry).run())
    if nodes:
        work += [Kubelets(registry, pods or Settings()).run(), Heartbeats(registry, "v1.34.0").run()]
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield Simulation(registry)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    failures = [one for one in results if isinstance(one, Exception)]
    if failures:
        raise ExceptionGroup("background work failed", failures)


def pod(name: str, **spec: Any) -> Object:
    """A pod with one container; ``annotations``, ``labels``, ``owners``, ``namespace`` go into its metadata."""
    metadata: Object = {"name": name, "namespace": spec.pop("namespace", "default")}
    for field, key in (("annotations", "annotations"), ("labels", "labels"), ("owners", "ownerReferences")):
        if field in spec:
            metadata[key] = spec.pop(field)
    container: Object = {"name": "main", "image": "busybox"}
    for field in ("command", "args", "resources"):
        if field in spec:
            container[field] = spec.pop(field)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


def owner(obj: Object, *, blocks: bool = False, controller: bool = False) -> Object:
    """A reference to an owner."""
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "blockOwnerDeletion": blocks,
        "controller": controller,
    }


def config_map(name: str, *owners: Object, namespace: str = "default", **metadata: Any) -> Object:
    """A ConfigMap, the smallest thing that can be owned."""
    meta: Object = {"name": name, "namespace": namespace, **metadata}
    if owners:
        meta["ownerReferences"] = list(owners)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def phases(pods: Iterable[Object]) -> dict[str, str]:
    """Phases by pod name."""
    return {one["metadata"]["name"]: one["status"].get("phase", "") for one in pods}


CONFIG_MAPS = kinds.CONFIG_MAPS
