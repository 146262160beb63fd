"""Pods whose node is gone: nobody will ever stop them, so they are removed."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.controllers.pods import delete_pod
from stromboli.localcluster.controllers.running import Mapper, itself
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.storage import Key


class VanishedNodeController:
    """Deletes the pods of a node when it goes."""

    name = "vanished-node"

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def sources(self) -> Mapping[Kind, Mapper]:
        """Nodes."""
        return {kinds.NODES: itself}

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Delete the pods of one node if it does not exist."""
        if self._registry.store.get(Key.of(kinds.NODES, None, name)) is not None:
            return None
        for stored in self._registry.store.list(kinds.PODS):
            if stored.object["spec"].get("nodeName") == name:
                await delete_pod(self._registry, stored.object, grace_period=0)
        return None
