"""The hypernode controller: node counts, and the sources that the configuration enables.

Each source is a task of its own. It is started anew whenever the ConfigMap changes, and one that cannot start, or
fails, is tried again with back-off while the others go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from stromboli.api import core, kinds, names
from stromboli.api.core import Node
from stromboli.controllers.hypernode import configuration, sources
from stromboli.controllers.hypernode.configuration import BadConfiguration, SourceSettings
from stromboli.controllers.hypernode.labelled import Bell
from stromboli.controllers.hypernode.picturing import Painter
from stromboli.controllers.hypernode.sources import Surroundings
from stromboli.controllers.hypernode.status import NodeCounts
from stromboli.controllers.hypernode.topologies import Discovered, Source
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.reporting import Events
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Observer, Result, Terminal
from stromboli.kube.informers import Informer, wait_all_synced

log = logging.getLogger(__name__)

NAME: Final = "hyperNode-controller"
SYNC_TIMEOUT: Final = 600.0
RETRY: Final = 30.0
"""Seconds until a source that failed is run again."""


class SourcesFailed(Exception):
    """Some sources could not start; the message has a line's worth of each."""


class Discovery:
    """Runs the sources that the ConfigMap enables."""

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        *,
        namespace: str = names.SYSTEM_NAMESPACE,
        release: str = names.DEFAULT_HELM_RELEASE,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._clock, self._painter = clock, Painter(client)
        self._key = (namespace, f"{release}{names.CONTROLLER_CONFIG_MAP_SUFFIX}")
        self._config_maps: Informer[core.ConfigMap] = Informer(
            client,
            kinds.CONFIG_MAPS,
            partial(core.decode, core.ConfigMap),
            namespace=namespace,
            field_selector=f"metadata.name={self._key[1]}",
        )
        self._nodes, self._hyper_nodes, self._bell = informers.nodes, informers.plain(kinds.HYPER_NODES), Bell()
        self._around = Surroundings(client, self._nodes.store, self._bell, clock)
        self._running: dict[str, tuple[str, asyncio.Task[None]]] = {}  # by source, with the ConfigMap's version
        self._tasks: asyncio.TaskGroup | None = None
        self._controller: Controller[str] = Controller(
            f"{NAME}-discovery", self.reconcile, observer=observer, clock=clock
        )
        self._listen()

    def _listen(self) -> None:
        def configured(*_: object) -> None:
            self._controller.enqueue(names.CONTROLLER_CONFIG_KEY)

        self._config_maps.add_handler(on_add=configured, on_update=configured, on_delete=configured)
        self._nodes.add_handler(on_add=self._bell.ring, on_update=self._node_changed, on_delete=self._bell.ring)
        self._hyper_nodes.add_handler(on_delete=lambda _gone: self._bell.ring())

    def _node_changed(self, old: Node, new: Node) -> None:
        if old.metadata.labels != new.metadata.labels:
            self._bell.ring(old, new)

    async def run(self) -> None:
        """Work until cancelled, once the caches are filled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            tasks.create_task(self._config_maps.run(), name=f"{NAME}-configuration")
            needed: list[Informer[Any]] = [self._config_maps, self._nodes, self._hyper_nodes]
            await wait_all_synced(*needed, timeout=SYNC_TIMEOUT)
            await self._controller.run()

    async def reconcile(self, _key: str) -> Result | None:
        """Have exactly the configured sources running, under the present configuration.

        Raises:
            Terminal: the configuration cannot be used; what runs goes on.
            SourcesFailed: to be called again.
        """
        config_map = self._config_maps.store.get(self._key)
        try:
            enabled = configuration.parse(None if config_map is None else config_map.data)
        except BadConfiguration as error:
            raise Terminal(str(error)) from error
        version = "" if config_map is None else config_map.metadata.resource_version
        await self._stop_outdated({settings.source for settings in enabled}, version)
        failed = [text for settings in enabled if (text := await self._start(settings, version))]
        if failed:
            raise SourcesFailed("; ".join(failed))
        return None

    async def _stop_outdated(self, wanted: set[str], version: str) -> None:
        for source, (started_under, task) in list(self._running.items()):
            if source not in wanted or started_under != version or task.done():
                del self._running[source]
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _start(self, settings: SourceSettings, version: str) -> str | None:
        """Start a source unless it runs; answers what went wrong, if anything."""
        if settings.source in self._running or self._tasks is None:
            return None
        try:
            source = await sources.make(settings, self._around)
        except Exception as error:
            log.error("source %s cannot start: %s", settings.source, error)
            return str(error)
        log.info("source %s starts", settings.source)
        task = self._tasks.create_task(self._run(settings.source, source), name=f"{NAME}-{settings.source}")
        self._running[settings.source] = (version, task)
        return None

    async def _run(self, name: str, source: Source) -> None:
        async def publish(found: Sequence[Discovered]) -> bool:
            return await self._painter.paint(name, found)

        while True:
            try:
                await source.run(publish)
            except Exception:
                log.exception("source %s failed; again in %g s", name, RETRY)
            await self._clock.sleep(RETRY)


class HyperNodeController:
    """Node counts and discovery side by side. Make it, then :meth:`run` it beside ``informers.run()``."""

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        events: Events,
        *,
        namespace: str = names.SYSTEM_NAMESPACE,
        release: str = names.DEFAULT_HELM_RELEASE,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._counts = NodeCounts(client, informers, events, observer=observer, clock=clock)
        self._discovery = Discovery(
            client, informers, namespace=namespace, release=release, observer=observer, clock=clock
        )

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._counts.run())
            tasks.create_task(self._discovery.run())
