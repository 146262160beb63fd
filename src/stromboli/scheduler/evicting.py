"""Carrying out evictions: say why, then always delete (spec 04 section 20).

The mirror holds the pod as Releasing from the moment a cycle commits its eviction. When the server refuses, the pod's
true state is fetched and the eviction undone in the mirror (:mod:`stromboli.scheduler.resyncing`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from stromboli.api.kinds import PODS
from stromboli.kube.client import Client
from stromboli.kube.errors import KubeError, NotFound
from stromboli.scheduler.conditions import PodCondition, PodConditions
from stromboli.scheduler.core.results import Evict, TaskRef
from stromboli.scheduler.eventing import PodEvents
from stromboli.scheduler.resyncing import Resync

log = logging.getLogger(__name__)

QUEUE_LENGTH = 5000
WORKERS = 16


class Evictor:
    """A queue of evictions and the workers that carry them out."""

    def __init__(
        self,
        client: Client,
        resync: Resync,
        conditions: PodConditions,
        events: PodEvents,
        *,
        scheduler_name: str,
        workers: int = WORKERS,
    ) -> None:
        self._client = client
        self._resync = resync
        self._conditions = conditions
        self._events = events
        self._disruption = f"{scheduler_name}: preempting to accommodate a higher priority pod"
        self._workers = workers
        self._queue: asyncio.Queue[Evict] = asyncio.Queue(QUEUE_LENGTH)

    async def submit(self, evictions: Sequence[Evict]) -> None:
        """Hand over the evictions of a cycle; waits while the queue is full."""
        for evict in evictions:
            self._events.pod_group(evict.task.job_id, evict.job_uid, "Normal", "Evict", evict.reason)
            await self._queue.put(evict)

    async def run(self) -> None:
        """Carry out evictions until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._workers):
                tasks.create_task(self._work(), name=f"evict-{number}")

    async def _work(self) -> None:
        while True:
            evict = await self._queue.get()
            try:
                await self._evict(evict)
            except Exception:  # a defect here must cost one eviction, not the worker
                log.exception("eviction of %s failed unexpectedly", evict.task.key)
                self._resync.enqueue(evict.task)
            finally:
                self._queue.task_done()

    async def _evict(self, evict: Evict) -> None:
        message = f"Pod is evicted, because of {evict.reason}"
        self._events.pod(evict.task, "Warning", "Evict", message)
        await self._conditions.set(
            evict.task,
            [
                PodCondition("Ready", "False", "Evict", message),
                PodCondition("DisruptionTarget", "True", "PreemptionByScheduler", self._disruption),
            ],
        )
        await self._delete(evict.task)

    async def _delete(self, task: TaskRef) -> None:
        try:
            await self._client.delete(PODS, task.name, task.namespace, uid=task.uid)
        except NotFound:
            self._resync.enqueue(task)
        except KubeError as error:
            log.warning("%s: could not be evicted: %s", task.key, error)
            self._resync.enqueue(task)
