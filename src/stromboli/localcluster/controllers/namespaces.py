"""Namespaces: what every one contains from the start, and how one that is deleted empties itself."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.controllers.running import Mapper, itself
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Key, Object

CA_CONFIG_MAP = "kube-root-ca.crt"
AGAIN_SECONDS = 0.1
"""How soon to look again at a namespace that still holds something (pods stopping, finalizers of others)."""


class NamespaceController:
    """Default ServiceAccount and CA bundle in living namespaces, an end to those that are deleted."""

    name = "namespace"

    def __init__(self, registry: Registry, ca: str) -> None:
        self._registry = registry
        self._ca = ca

    def sources(self) -> Mapping[Kind, Mapper]:
        """Namespaces, and what must stay in them."""
        return {kinds.NAMESPACES: itself, kinds.SERVICE_ACCOUNTS: _default_account, kinds.CONFIG_MAPS: _ca_bundle}

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Complete or empty one namespace."""
        stored = self._registry.store.get(Key.of(kinds.NAMESPACES, None, name))
        if stored is None:
            return None
        if stored.object["metadata"].get("deletionTimestamp"):
            return await self._empty(name)
        await complete(self._registry, name, self._ca)
        return None

    async def _empty(self, name: str) -> float | None:
        for kind in self._kinds():
            if self._registry.store.list(kind, name):
                await self._registry.delete_collection(kind, name)
        if any(self._registry.store.list(kind, name) for kind in self._kinds()):
            return AGAIN_SECONDS
        stored = self._registry.store.get(Key.of(kinds.NAMESPACES, None, name))
        if stored is not None:
            spec = {**stored.object.get("spec", {}), "finalizers": []}
            await self._registry.update(kinds.NAMESPACES, {**stored.object, "spec": spec}, subresource="finalize")
        return None

    def _kinds(self) -> list[Kind]:
        return [one.kind for one in self._registry.kinds if one.kind.namespaced and one.handler is None]


async def complete(registry: Registry, namespace: str, ca: str) -> None:
    """Create what every namespace has: the ServiceAccount ``default`` and the ConfigMap with the cluster's CA."""
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    bundle: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CA_CONFIG_MAP},
        "data": {"ca.crt": ca},
    }
    for kind, obj in ((kinds.SERVICE_ACCOUNTS, account), (kinds.CONFIG_MAPS, bundle)):
        if registry.store.get(Key.of(kind, namespace, obj["metadata"]["name"])) is None:
            try:
                await registry.create(kind, obj, namespace)
            except StatusError as error:
                if error.reason != "AlreadyExists":
                    raise


def _default_account(obj: Object) -> list[tuple[str, str]]:
    metadata = obj["metadata"]
    return [("", metadata["namespace"])] if metadata["name"] == "default" else []


def _ca_bundle(obj: Object) -> list[tuple[str, str]]:
    metadata = obj["metadata"]
    return [("", metadata["namespace"])] if metadata["name"] == CA_CONFIG_MAP else []
