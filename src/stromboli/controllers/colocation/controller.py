"""The controller that keeps colocation annotations of pods right, when labels, configurations or annotations change."""

from __future__ import annotations

import logging

from stromboli.api import kinds, names
from stromboli.api.core import Pod
from stromboli.controllers.colocation import choosing
from stromboli.controllers.informers import SharedInformers
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Observer, Result
from stromboli.kube.errors import NotFound
from stromboli.kube.informers import wait_all_synced
from stromboli.kube.json import JsonObject
from stromboli.kube.stores import Key

log = logging.getLogger(__name__)

NAME = "colocation-config-controller"
SYNC_TIMEOUT = 600.0
DELAY = 1.0
"""Seconds between a change and the pass over a pod, so that several changes are one pass."""
BY_NAMESPACE = "configuration-namespace"
_OWN = (names.COLOCATION_CONFIG, names.COLOCATION_CONFIG_NAME)


class ColocationController:
    """Annotates pods. Make it, then :meth:`run` it beside ``informers.run()``."""

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        *,
        delay: float = DELAY,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client, self._delay = client, delay
        self._pods, self._configurations = informers.pods, informers.plain(kinds.COLOCATION_CONFIGURATIONS)
        self._configurations.store.add_index(BY_NAMESPACE, lambda one: (json.key_of(one)[0],))
        self._controller: Controller[Key] = Controller(NAME, self.reconcile, observer=observer, clock=clock)
        self._pods.add_handler(on_add=self._pod_seen, on_update=self._pod_changed)
        self._configurations.add_handler(
            on_add=self._configured,
            on_update=self._reconfigured,
            on_delete=self._configured,
        )

    async def run(self) -> None:
        """Work until cancelled, once the caches are filled."""
        await wait_all_synced(self._pods, self._configurations, timeout=SYNC_TIMEOUT)
        await self._controller.run()

    def _pod_seen(self, pod: Pod) -> None:
        """Most pods have nothing to do with colocation, and are not looked at again."""
        if self._changes(pod):
            self._controller.queue.add_after(pod.key, self._delay)

    def _changes(self, pod: Pod) -> JsonObject:
        configurations = self._configurations.store.by_index(BY_NAMESPACE, pod.namespace)
        return choosing.changes(pod, choosing.choose(configurations, pod.metadata.labels))

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        before, after = (one.metadata for one in (old, new))
        told = any(before.annotations.get(key) != after.annotations.get(key) for key in _OWN)
        if told or before.labels != after.labels:
            self._pod_seen(new)

    def _configured(self, *configurations: JsonObject) -> None:
        namespace = json.key_of(configurations[0])[0]
        for pod in self._pods.store.list(namespace):
            if any(choosing.selects(one, pod.metadata.labels) for one in configurations):
                self._pod_seen(pod)

    def _reconfigured(self, old: JsonObject, new: JsonObject) -> None:
        if old.get("spec") != new.get("spec"):
            self._configured(old, new)

    async def reconcile(self, key: Key) -> Result | None:
        """Set the annotations of one pod, if they are not right."""
        pod = self._pods.store.get(key)
        if pod is None or pod.deleting:
            return None
        changes = self._changes(pod)
        if not changes:
            return None
        patch = {"metadata": {"uid": pod.uid, "annotations": changes}}
        try:
            await self._client.patch(kinds.PODS, pod.name, patch, pod.namespace)
        except NotFound:
            pass  # deleted meanwhile
        return None
