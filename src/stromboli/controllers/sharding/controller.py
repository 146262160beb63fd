"""The controller of NodeShards: deals nodes out anew at intervals, and when a node has become another.

Only ``spec.nodesDesired`` is written here; the status of a NodeShard says what its scheduler uses and is the
scheduler's. NodeShards of schedulers that are not configured are deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Final

from stromboli.api import core, kinds, names
from stromboli.api.core import ConfigMap, Node, Pod
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.sharding import configuration
from stromboli.controllers.sharding.assigning import Shard, assign
from stromboli.controllers.sharding.configuration import BadConfiguration, Configuration
from stromboli.controllers.sharding.utilisation import Candidate, Utilisation, utilisation
from stromboli.kube import json
from stromboli.kube.applying import delete_if_present
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Observer, Result
from stromboli.kube.errors import AlreadyExists, NotFound
from stromboli.kube.informers import Informer, wait_all_synced
from stromboli.kube.json import JsonObject

log = logging.getLogger(__name__)

NAME: Final = "sharding-controller"
SYNC_TIMEOUT: Final = 600.0
ALL: Final = ""
"""The key of a pass over everything; other keys are names of schedulers."""
MAX_RETRIES: Final = 3
ASSIGNMENT_LASTS: Final = 300.0
SETTLE: Final = 0.2
FAR: Final = Fraction(1, 2)
"""A change of a node's utilisation that does not wait for the next interval."""
BY_NODE: Final = "pod-node"


class ShardingController:
    """Reconciles NodeShards. Make it, then :meth:`run` it beside ``informers.run()``.

    ``shards``, ``sync_period`` (seconds) and ``node_events`` hold where the ConfigMap does not say otherwise; without
    ``config_map`` there is none.
    """

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        shards: tuple[Shard, ...],
        *,
        sync_period: float = 60.0,
        node_events: bool = True,
        config_map: str = names.SHARDING_CONFIG_MAP,
        namespace: str = names.SYSTEM_NAMESPACE,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client, self._clock = client, clock
        self._configuration, self._period, self._node_events = Configuration(shards), sync_period, node_events
        self._nodes, self._pods, self._stored = informers.nodes, informers.pods, informers.plain(kinds.NODE_SHARDS)
        self._pods.store.add_index(BY_NODE, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())
        self._config_maps = _config_maps(client, namespace, config_map)
        self._used: dict[str, Utilisation] = {}  # when nodes were last dealt out
        self._assigned: dict[str, tuple[str, ...]] | None = None
        self._assigned_at = 0.0
        self._controller: Controller[str] = Controller(
            NAME, self.reconcile, max_retries=MAX_RETRIES, give_up=self._give_up, observer=observer, clock=clock
        )
        self._checks: Controller[str] = Controller(f"{NAME}-nodes", self.check, max_retries=MAX_RETRIES, clock=clock)
        self._listen()

    async def run(self) -> None:
        """Work until cancelled, once the caches are filled."""
        async with asyncio.TaskGroup() as tasks:
            needed: list[Informer[Any]] = [self._nodes, self._pods, self._stored]
            if self._config_maps is not None:
                tasks.create_task(self._config_maps.run(), name=f"{NAME}-configuration")
                needed.append(self._config_maps)
            await wait_all_synced(*needed, timeout=SYNC_TIMEOUT)
            self._controller.enqueue(ALL)
            tasks.create_task(self._controller.run(), name=NAME)
            tasks.create_task(self._checks.run(), name=f"{NAME}-nodes")

    # -- from changes to keys ----------------------------------------------------------------------------------------

    def _listen(self) -> None:
        if self._config_maps is not None:
            self._config_maps.add_handler(
                on_add=self._configured,
                on_update=lambda _old, new: self._configured(new),
                on_delete=lambda gone: log.warning("ConfigMap %s is gone; what it said holds on", gone.name),
            )
        self._stored.add_handler(
            on_add=self._shard_seen, on_update=lambda _old, new: self._shard_seen(new), on_delete=self._shard_seen
        )
        self._nodes.add_handler(
            on_add=lambda node: self._check(node.name),
            on_update=self._node_changed,
            on_delete=lambda node: self._check(node.name),
        )
        self._pods.add_handler(on_add=self._pod_seen, on_update=self._pod_changed, on_delete=self._pod_seen)

    def _configured(self, config_map: ConfigMap) -> None:
        try:
            found = configuration.parse(config_map.data)
        except BadConfiguration as error:
            log.warning("ConfigMap %s has no effect, what held before holds on: %s", config_map.name, error)
            return
        self._configuration = found
        if found.sync_period is not None:
            self._period = found.sync_period
        if found.node_events is not None:
            self._node_events = found.node_events
        self._assigned = None
        self._controller.enqueue(ALL)

    def _shard_seen(self, shard: JsonObject) -> None:
        self._controller.enqueue(json.key_of(shard)[1])

    def _node_changed(self, old: Node, new: Node) -> None:
        before, after = ((one.metadata.labels, one.metadata.annotations, one.status.capacity) for one in (old, new))
        if before != after:
            self._check(new.name)

    def _pod_seen(self, pod: Pod) -> None:
        self._check(pod.spec.node_name)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if (old.spec.node_name, old.spec.containers, old.status.phase) != (
            new.spec.node_name,
            new.spec.containers,
            new.status.phase,
        ):
            self._check(old.spec.node_name)
            self._check(new.spec.node_name)

    def _check(self, node: str) -> None:
        if node and self._node_events:
            self._checks.enqueue(node)

    # -- from a key to writes ----------------------------------------------------------------------------------------

    async def check(self, name: str) -> Result | None:
        """Have everything dealt out anew soon if a node came, went, or is used quite otherwise than it was."""
        if self._assigned is None:
            return None  # that is about to be done anyway
        node, before = self._nodes.store.get(("", name)), self._used.get(name)
        if (node is None) != (before is None) or (
            node is not None and before is not None and self._utilisation(node).is_far_from(before, FAR)
        ):
            self._controller.queue.add_after(ALL, SETTLE)
        return None

    async def reconcile(self, key: str) -> Result | None:
        """Deal out all nodes, or bring one NodeShard up to date. Raises to be called again."""
        if key == ALL:
            await self._deal_out()
            return Result(requeue_after=self._period)
        desired = self._assignment().get(key)
        if desired is not None:
            await self._write(key, desired)
        return None

    async def _deal_out(self) -> None:
        self._assigned = None
        for name in self._assignment():
            self._controller.enqueue(name)
        for shard in self._stored.store.list():
            name = json.key_of(shard)[1]
            if name not in self._assignment():
                log.info("NodeShard %s is deleted, no scheduler of that name is configured", name)
                await delete_if_present(self._client, kinds.NODE_SHARDS, name, uid=json.uid_of(shard))

    def _assignment(self) -> dict[str, tuple[str, ...]]:
        """Nodes by scheduler: what was worked out last, unless that is long ago."""
        now = self._clock.monotonic()
        if self._assigned is None or now - self._assigned_at > ASSIGNMENT_LASTS:
            nodes = self._nodes.store.list()
            self._used = {node.name: self._utilisation(node) for node in nodes}
            candidates = [Candidate(node.name, self._used[node.name], node.metadata.labels) for node in nodes]
            self._assigned, self._assigned_at = assign(self._configuration.shards, candidates), now
        return self._assigned

    def _utilisation(self, node: Node) -> Utilisation:
        return utilisation(node, self._pods.store.by_index(BY_NODE, node.name))

    async def _write(self, name: str, desired: Sequence[str]) -> None:
        stored = self._stored.store.get(("", name))
        spec = {"nodesDesired": list(desired)}
        try:
            if stored is None:
                await self._client.create(kinds.NODE_SHARDS, {"metadata": {"name": name}, "spec": spec})
            elif is_worth_writing((stored.get("spec") or {}).get("nodesDesired") or (), desired):
                patch = {"metadata": {"uid": json.uid_of(stored)}, "spec": spec}
                await self._client.patch(kinds.NODE_SHARDS, name, patch)
        except AlreadyExists:
            pass  # the cache is behind; its event brings another look
        except NotFound:
            pass  # deleted meanwhile; likewise

    async def _give_up(self, key: str, _error: Exception) -> None:
        if key == ALL:  # the interval goes on
            self._controller.queue.add_after(ALL, self._period)


def is_worth_writing(present: Sequence[str], desired: Sequence[str]) -> bool:
    """Whether the number differs, or at least a tenth of the nodes would be new. Small swaps are not worth moving."""
    if len(present) != len(desired):
        return True
    return len(set(desired) - set(present)) >= max(1, len(desired) // 10)


def _config_maps(client: Client, namespace: str, name: str) -> Informer[ConfigMap] | None:
    if not name:
        return None
    return Informer(
        client,
        kinds.CONFIG_MAPS,
        partial(core.decode, ConfigMap),
        namespace=namespace,
        field_selector=f"metadata.name={name}",
    )
