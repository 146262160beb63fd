"""Removes the queue-allocation scheduling gate from pods that their queue has admitted (spec 04 section 33).

The pod stays gated in the cycle that asks for it; it is placed in a later one, after the watch has shown it without
gates.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from stromboli.api import names
from stromboli.api.kinds import PODS
from stromboli.kube.client import Client, PatchType
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller
from stromboli.kube.errors import KubeError, NotFound
from stromboli.scheduler.core.results import TaskRef

log = logging.getLogger(__name__)

DEFAULT_WORKERS = 5
WAITING_PER_WORKER = 200

GATE_REMOVAL = {"spec": {"schedulingGates": [{"name": names.QUEUE_ALLOCATION_GATE, "$patch": "delete"}]}}


class GateRemover:
    """A bounded queue of pods and the workers that open them."""

    def __init__(self, client: Client, *, workers: int = DEFAULT_WORKERS, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._limit = max(workers, 1) * WAITING_PER_WORKER
        self._controller = Controller[TaskRef](
            "scheduler-gates",
            self._remove,
            workers=workers if workers >= 1 else DEFAULT_WORKERS,
            max_retries=0,
            clock=clock,
        )

    @property
    def waiting(self) -> int:
        """Pods that no worker has taken yet."""
        return len(self._controller.queue)

    def submit(self, tasks: Iterable[TaskRef]) -> None:
        """Open these pods; what finds the queue full is asked for again by the next cycle."""
        for task in tasks:
            if self.waiting >= self._limit:
                return
            self._controller.enqueue(task)

    async def run(self) -> None:
        """Remove gates until cancelled."""
        await self._controller.run()

    async def _remove(self, task: TaskRef) -> None:
        patch = {"metadata": {"uid": task.uid}, **GATE_REMOVAL}
        try:
            await self._client.patch(PODS, task.name, patch, task.namespace, type=PatchType.STRATEGIC)
        except NotFound:
            return
        except KubeError as error:
            log.warning("%s: the scheduling gate could not be removed: %s", task.key, error)
