"""The informers of the controller manager: one for each kind that any running controller reads, shared by all.

An informer is made when a controller first asks for it, so a kind that nobody reads is never listed, and a CRD that is
missing holds up only the controllers that need it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from stromboli.api import core, kinds
from stromboli.api.kinds import Kind
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.informers import Informer
from stromboli.kube.json import JsonObject
from stromboli.kube.stores import PackedStore, Store

S = TypeVar("S", bound=core.Struct)


class SharedInformers:
    """Informers by kind. Ask for all of them before :meth:`run`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._informers: dict[tuple[Kind, str], Informer[Any]] = {}

    @property
    def pods(self) -> Informer[core.Pod]:
        """Pods."""
        return self._hot(kinds.PODS, core.Pod)

    @property
    def nodes(self) -> Informer[core.Node]:
        """Nodes."""
        return self._hot(kinds.NODES, core.Node)

    @property
    def pod_groups(self) -> Informer[core.PodGroup]:
        """PodGroups."""
        return self._hot(kinds.POD_GROUPS, core.PodGroup)

    @property
    def queues(self) -> Informer[core.Queue]:
        """Queues."""
        return self._hot(kinds.QUEUES, core.Queue)

    @property
    def claims(self) -> Informer[core.PersistentVolumeClaim]:
        """PersistentVolumeClaims."""
        return self._hot(kinds.PERSISTENT_VOLUME_CLAIMS, core.PersistentVolumeClaim)

    @property
    def priority_classes(self) -> Informer[core.PriorityClass]:
        """PriorityClasses."""
        return self._hot(kinds.PRIORITY_CLASSES, core.PriorityClass)

    @property
    def replica_sets(self) -> Informer[core.ReplicaSet]:
        """ReplicaSets."""
        return self._hot(kinds.REPLICA_SETS, core.ReplicaSet)

    @property
    def stateful_sets(self) -> Informer[core.StatefulSet]:
        """StatefulSets."""
        return self._hot(kinds.STATEFUL_SETS, core.StatefulSet)

    def plain(self, kind: Kind) -> Informer[JsonObject]:
        """Objects of ``kind`` as plain data: none is refused for its shape, and nothing but managed fields is lost."""
        return self._informer(kind, "plain", json.decode_without_managers, PackedStore())

    def _hot(self, kind: Kind, struct: type[S]) -> Informer[S]:
        return self._informer(kind, struct.__name__, partial(core.decode, struct))

    def _informer(
        self, kind: Kind, form: str, decode: Callable[[bytes], Any], store: Store[Any] | None = None
    ) -> Informer[Any]:
        key = (kind, form)
        if key not in self._informers:
            self._informers[key] = Informer(self._client, kind, decode, store=store)
        return self._informers[key]

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for (kind, _), informer in self._informers.items():
                tasks.create_task(informer.run(), name=f"informer-{kind.resource}")

    @property
    def unsynced(self) -> list[str]:
        """Resources whose first listing is not complete."""
        return [kind.resource for (kind, _), informer in self._informers.items() if not informer.synced]
