"""Config maps that the deviceshare plugin reads: the device configuration, and reports of agents (spec 06 sections 29.1
and 33.2).

Only those that the policy asks for are watched. No cycle begins before they have been listed: without the configuration
a pod that asks for cards would not be seen to do so. A server that does not answer holds cycles up only for a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from stromboli.api import core
from stromboli.api.kinds import CONFIG_MAPS
from stromboli.kube.client import Client
from stromboli.kube.errors import NotSynced
from stromboli.kube.informers import Informer, wait_all_synced
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import Policy, boolean
from stromboli.scheduler.feeding import Feed
from stromboli.scheduler.plugins.deviceshare import DeviceShare
from stromboli.scheduler.plugins.deviceshare.mindcluster_reports import (
    AGENT_LABEL,
    CLUSTER_SOURCE,
    PARAMETERS,
    VOLCANO_LABEL,
)
from stromboli.scheduler.plugins.deviceshare.settings import Settings

log = logging.getLogger(__name__)

SYNC_SECONDS = 30.0
MINDCLUSTER_NAMESPACE = "mindx-dl"


@dataclass(frozen=True, slots=True)
class Selection:
    """Some config maps."""

    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None


def selections(policy: Policy) -> tuple[Selection, ...]:
    """What a policy asks for."""
    option = policy.option(DeviceShare.name)
    if option is None:
        return ()
    try:
        settings = Settings.read(option.arguments)
    except ValueError:
        return ()  # the plugin is not opened with such arguments
    found = []
    if settings.vgpu or settings.hami:
        found.append(Selection(settings.map_namespace, field_selector=f"metadata.name={settings.map_name}"))
    if settings.mindcluster:
        found.append(_reports(policy))
    return tuple(found)


def _reports(policy: Policy) -> Selection:
    if boolean(policy.arguments_of(PARAMETERS), CLUSTER_SOURCE, True):
        return Selection(MINDCLUSTER_NAMESPACE, label_selector=f"{VOLCANO_LABEL}=true")
    return Selection(label_selector=f"{AGENT_LABEL}=true")


class DeviceMaps:
    """Keeps the config maps of the policy in force in the mirror."""

    def __init__(self, client: Client, mirror: Mirror, feed: Feed, policy: Callable[[], Policy]) -> None:
        self._client = client
        self._mirror = mirror
        self._feed = feed
        self._policy = policy
        self._watched: tuple[Selection, ...] = ()
        self._listed = asyncio.Event()
        self._listed.set()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._watch(self._watched)

    async def ready(self) -> None:
        """Return when the config maps of the policy in force have been listed, or could not be for some time."""
        wanted = selections(self._policy())
        if wanted != self._watched:
            self._watched = wanted
            self._listed.clear()
            self._changed.set()
        await self._listed.wait()

    async def _watch(self, wanted: Sequence[Selection]) -> None:
        informers = [self._informer(selection) for selection in wanted]
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(informer.run()) for informer in informers]
            await _wait(informers)
            if not self._changed.is_set():
                self._listed.set()
            await self._changed.wait()
            for task in running:
                task.cancel()
        for informer in informers:
            for known in informer.store.list():
                self._feed.submit(self._delete, known)

    def _informer(self, selection: Selection) -> Informer[core.ConfigMap]:
        informer = Informer(
            self._client,
            CONFIG_MAPS,
            partial(core.decode, core.ConfigMap),
            namespace=selection.namespace,
            label_selector=selection.label_selector,
            field_selector=selection.field_selector,
        )
        informer.add_handler(
            on_add=lambda found: self._feed.submit(self._mirror.apply_object, found),
            on_update=lambda _old, new: self._feed.submit(self._mirror.apply_object, new),
            on_delete=lambda gone: self._feed.submit(self._delete, gone),
        )
        return informer

    def _delete(self, gone: core.ConfigMap) -> None:
        self._mirror.delete_object(core.ConfigMap, gone.key, gone.uid)


async def _wait(informers: Sequence[Informer[core.ConfigMap]]) -> None:
    try:
        await wait_all_synced(*informers, timeout=SYNC_SECONDS)
    except* NotSynced as late:
        log.error("deviceshare goes on without: %s", "; ".join(str(error) for error in late.exceptions))
