"""Runs the stand-in controllers: one watch for each kind, one de-duplicating queue and one worker for each controller.

A controller is level-triggered: it gets a namespace and a name, reads the present state and changes what is not as it
should be. A key that fails is tried again with back-off and never stops the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from stromboli.api.kinds import Kind
from stromboli.localcluster.controllers.queues import Queue
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Gone, Object, Stored

log = logging.getLogger(__name__)

Name: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""

Mapper: TypeAlias = Callable[[Object], Iterable[Name]]
"""Which keys of a controller an object that appears, changes or goes away concerns."""


class Controller(Protocol):
    """One control loop."""

    name: str

    def sources(self) -> Mapping[Kind, Mapper]:
        """The kinds to watch, and what their objects concern."""

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Bring one object closer to what it should be; seconds until the next look, or None."""


def itself(obj: Object) -> Iterable[Name]:
    """The mapper of a controller's own kind."""
    metadata = obj["metadata"]
    return ((metadata.get("namespace", ""), metadata["name"]),)


def owned_by(kind: str) -> Mapper:
    """The mapper of objects that a controller of ``kind`` made."""

    def owner(obj: Object) -> Iterable[Name]:
        metadata = obj["metadata"]
        return [
            (metadata.get("namespace", ""), reference["name"])
            for reference in metadata.get("ownerReferences") or ()
            if reference.get("controller") and reference["kind"] == kind
        ]

    return owner


class ControllerRunner:
    """Runs controllers until it is cancelled."""

    def __init__(self, registry: Registry, controllers: Sequence[Controller]) -> None:
        self._registry = registry
        self._controllers = controllers
        self._queues: dict[str, Queue[Name]] = {controller.name: Queue() for controller in controllers}

    async def run(self) -> None:
        """Watch and work; ends only by cancellation."""
        subscribers: dict[Kind, list[tuple[Queue[Name], Mapper]]] = {}
        for controller in self._controllers:
            for kind, mapper in controller.sources().items():
                subscribers.setdefault(kind, []).append((self._queues[controller.name], mapper))
        async with asyncio.TaskGroup() as group:
            for kind, listeners in subscribers.items():
                group.create_task(self._watch(kind, listeners))
            for controller in self._controllers:
                group.create_task(self._work(controller))

    async def _watch(self, kind: Kind, listeners: Sequence[tuple[Queue[Name], Mapper]]) -> None:
        while True:
            watch = self._registry.watch(kind)
            for stored in self._registry.store.list(kind):
                _tell(listeners, stored)
            try:
                while True:
                    for event in await watch.batch():
                        _tell(listeners, event.stored)
            except Gone:
                log.info("watch of %s fell behind; looking at everything again", kind.plural)
                self._look_at_everything()

    def _look_at_everything(self) -> None:
        """A deletion that was missed leaves no trace in its kind's list, but in the objects of other kinds."""
        for controller in self._controllers:
            for kind, mapper in controller.sources().items():
                for stored in self._registry.store.list(kind):
                    _tell([(self._queues[controller.name], mapper)], stored)

    async def _work(self, controller: Controller) -> None:
        queue = self._queues[controller.name]
        while True:
            key = await queue.take()
            try:
                delay = await controller.reconcile(*key)
            except StatusError as error:
                if error.reason not in ("Conflict", "NotFound"):
                    log.warning("%s: %s: %s", controller.name, "/".join(filter(None, key)), error)
                queue.failed(key)
            except Exception:
                log.exception("%s: %s", controller.name, "/".join(filter(None, key)))
                queue.failed(key)
            else:
                queue.succeeded(key)
                if delay is not None:
                    queue.add_after(key, delay)
            await asyncio.sleep(0)  # the registry rarely waits for anything: let requests in between


def _tell(listeners: Iterable[tuple[Queue[Name], Mapper]], stored: Stored) -> None:
    """Queue what an object concerns; one that makes no sense to a controller is passed over."""
    for queue, mapper in listeners:
        try:
            for key in mapper(stored.object):
                queue.add(key)
        except Exception:
            log.exception("%s %s is passed over", stored.key.plural, "/".join(filter(None, stored.key[2:])))
