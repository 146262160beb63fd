"""What the admission server knows of the cluster: queues, and namespaces where an endpoint needs them.

Kept by informers. Decisions read the copies; nothing is asked of the API server while a review waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping

import orjson

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.kube.informers import Informer
from stromboli.webhooks.families import Families, Family
from stromboli.webhooks.shapes import Namespace, Queue, read, without_nulls


class CachedCluster:
    """A :class:`~stromboli.webhooks.context.Cluster` that follows the real one."""

    def __init__(self, client: Client, *, namespaces: bool) -> None:
        self._queues: Informer[Queue] = Informer(client, kinds.QUEUES, _queue)
        self._families = families = Families()
        self._queues.add_handler(
            on_add=families.put,
            on_update=lambda _, queue: families.put(queue),
            on_delete=lambda queue: families.remove(queue.name),
        )
        self._namespaces: Informer[Namespace] | None = (
            Informer(client, kinds.NAMESPACES, _namespace) if namespaces else None
        )

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queues.run())
            if self._namespaces is not None:
                group.create_task(self._namespaces.run())

    async def wait_synced(self, timeout: float) -> None:
        """Return when everything has been listed once. Raises ``NotSynced`` after ``timeout`` seconds."""
        await self._queues.wait_synced(timeout)
        if self._namespaces is not None:
            await self._namespaces.wait_synced(timeout)

    @property
    def synced(self) -> bool:
        """Whether everything has been listed once."""
        return self._queues.synced and (self._namespaces is None or self._namespaces.synced)

    def queue(self, name: str) -> Queue | None:
        """The queue of that name."""
        return self._queues.store.get(("", name))

    def queues(self) -> Iterable[Queue]:
        """All queues."""
        return self._queues.store

    def children(self, parent: str) -> Collection[Queue]:
        """The queues that name ``parent`` as their parent, by name."""
        return self._families.below(parent).children

    def family(self, parent: str) -> Family:
        """The same queues with what they claim together."""
        return self._families.below(parent)

    def namespace_annotations(self, name: str) -> Mapping[str, str] | None:
        """Annotations of a namespace, or ``None`` where it is not known."""
        namespace = self._namespaces.store.get(("", name)) if self._namespaces is not None else None
        return namespace.metadata.annotations if namespace is not None else None


def _queue(raw: bytes) -> Queue:
    return read(Queue, without_nulls(orjson.loads(raw)))


def _namespace(raw: bytes) -> Namespace:
    return read(Namespace, without_nulls(orjson.loads(raw)))
