"""The part of the controller that keeps ``status.nodeCount``, when HyperNodes change and when nodes do."""

from __future__ import annotations

from stromboli.api import core, kinds
from stromboli.api.core import HyperNode, Node
from stromboli.controllers.hypernode.counting import concerns, count
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.reporting import Events, Stored
from stromboli.kube import json
from stromboli.kube.applying import patch_changes
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Observer, Result, Terminal
from stromboli.kube.errors import NotFound
from stromboli.kube.informers import wait_all_synced
from stromboli.kube.json import JsonObject
from stromboli.kube.stores import Key

NAME = "hyperNode-controller"
SYNC_TIMEOUT = 600.0


class NodeCounts:
    """Reconciles the status of HyperNodes. Make it, then :meth:`run` it beside ``informers.run()``."""

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        events: Events,
        *,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._hyper_nodes, self._nodes = informers.plain(kinds.HYPER_NODES), informers.nodes
        self._parsed: dict[Key, HyperNode] = {}  # those that some node may concern
        self._controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            objects=Stored(kinds.HYPER_NODES, self._hyper_nodes.store, events),
            observer=observer,
            clock=clock,
        )
        self._hyper_nodes.add_handler(
            on_add=self._seen, on_update=lambda _old, new: self._seen(new), on_delete=self._gone
        )
        self._nodes.add_handler(on_add=self._node_seen, on_update=self._node_changed, on_delete=self._node_seen)

    async def run(self) -> None:
        """Work until cancelled, once the caches are filled."""
        await wait_all_synced(self._hyper_nodes, self._nodes, timeout=SYNC_TIMEOUT)
        await self._controller.run()

    def _seen(self, raw: JsonObject) -> None:
        key = json.key_of(raw)
        self._parsed.pop(key, None)
        self._controller.enqueue(key)

    def _gone(self, raw: JsonObject) -> None:
        self._parsed.pop(json.key_of(raw), None)

    def _node_seen(self, node: Node) -> None:
        self._nodes_concern(node)

    def _node_changed(self, old: Node, new: Node) -> None:
        if old.metadata.labels != new.metadata.labels:
            self._nodes_concern(old, new)

    def _nodes_concern(self, *nodes: Node) -> None:
        for key, hyper_node in self._parsed.items():
            if concerns(hyper_node, *nodes):
                self._controller.enqueue(key)

    async def reconcile(self, key: Key) -> Result | None:
        """Count the nodes of one HyperNode, and write the number if it changed."""
        raw = self._hyper_nodes.store.get(key)
        if raw is None:
            return None
        hyper_node = _parse(raw)
        if any(member.selector and member.selector.exact_match is None for member in hyper_node.spec.members):
            self._parsed[key] = hyper_node
        found = count(hyper_node, self._nodes.store)
        status = raw.get("status") or {}
        if status.get("nodeCount") == found:
            return None
        wanted = {**raw, "status": {**status, "nodeCount": found}}
        try:
            await patch_changes(self._client, kinds.HYPER_NODES, raw, wanted, subresource="status")
        except NotFound:
            pass  # deleted meanwhile
        return None


def _parse(raw: JsonObject) -> HyperNode:
    try:
        return core.from_builtins(HyperNode, raw)
    except core.UndecodableObject as error:
        raise Terminal(str(error)) from error
