"""Sending binds to the API server: asynchronous, bounded, an outcome of its own for every pod (spec 04 section 19).

The mirror holds a pod as Binding from the moment a cycle commits it, so its resources are spoken for however slow the
server is. The watch confirms a bind. A refusal is made known on the pod, and the pod's true state is fetched (see
:mod:`stromboli.scheduler.resyncing`) before its resources are given back: an answer that was lost may hide a success.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stromboli.api.kinds import PODS
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import ApiError, KubeError, ServerError
from stromboli.kube.json import JsonObject
from stromboli.scheduler.conditions import PodConditions
from stromboli.scheduler.core.results import Bind, TaskRef
from stromboli.scheduler.eventing import PodEvents
from stromboli.scheduler.placements import Placements

log = logging.getLogger(__name__)

QUEUE_LENGTH = 5000
WORKERS = 64
SLOW_WORKERS = 64
"""For binds that wait for something first, such as volumes: they must not hold up the others."""


class PreBindError(Exception):
    """What a pod needs before it can be bound cannot be had; the text says what."""


class PreBinder(Protocol):
    """Prepares what a pod needs on its node, such as volumes."""

    def needs(self, bind: Bind) -> bool:
        """Whether this pod needs anything."""
        ...

    async def pre_bind(self, bind: Bind) -> None:
        """Return when everything is there. Raises PreBindError; what it had done by then is undone."""
        ...

    async def roll_back(self, bind: Bind) -> None:
        """Undo what ``pre_bind`` did: the pod is not bound after all. Never raises."""
        ...

    async def settle(self, bind: Bind) -> None:
        """The pod is bound, as far as is known: give back what was only held meanwhile. Never raises."""
        ...


class PreBinders:
    """Several pre-binders as one: in order, and rolled back in reverse order (spec 04 section 19)."""

    def __init__(self, *pre_binders: PreBinder) -> None:
        self._pre_binders = pre_binders

    def needs(self, bind: Bind) -> bool:
        """Whether the pod needs anything of any of them."""
        return any(each.needs(bind) for each in self._pre_binders)

    async def pre_bind(self, bind: Bind) -> None:
        """One after the other. At the first failure those before it are rolled back."""
        done: list[PreBinder] = []
        try:
            for each in self._pre_binders:
                if each.needs(bind):
                    await each.pre_bind(bind)
                    done.append(each)
        except Exception:
            for each in reversed(done):
                await each.roll_back(bind)
            raise

    async def roll_back(self, bind: Bind) -> None:
        """All that the pod needed, the last first."""
        for each in reversed(self._pre_binders):
            if each.needs(bind):
                await each.roll_back(bind)

    async def settle(self, bind: Bind) -> None:
        """All that the pod needed, the last first."""
        for each in reversed(self._pre_binders):
            if each.needs(bind):
                await each.settle(bind)


class BindOutcomes(Protocol):
    """Who learns how binds ended. Called on the event loop."""

    def bound(self, bind: Bind, cycle: int) -> None:
        """The server accepted the bind."""
        ...

    def refused(self, bind: Bind, cycle: int, error: Exception) -> None:
        """The bind failed, or its answer was lost: the pod's state must be fetched."""
        ...

    def prepared(self, bind: Bind, seconds: float) -> None:
        """What the pod needed before its bind was made ready in so long."""
        ...

    def took(self, seconds: float) -> None:
        """A bind was answered, well or not, after so long."""
        ...


@dataclass(frozen=True, slots=True)
class _Order:
    bind: Bind
    cycle: int


class Binder:
    """A queue of binds and the workers that send them."""

    def __init__(
        self,
        client: Client,
        outcomes: BindOutcomes,
        conditions: PodConditions,
        events: PodEvents,
        placements: Placements,
        *,
        pre_binder: PreBinder | None = None,
        workers: int = WORKERS,
        batch: int = 1,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._outcomes = outcomes
        self._conditions = conditions
        self._events = events
        self._placements = placements
        self._workers = workers
        self._batch = batch
        self._clock = clock
        self._pre_binder = pre_binder
        self._queue: asyncio.Queue[_Order] = asyncio.Queue(QUEUE_LENGTH)
        self._slow: asyncio.Queue[_Order] = asyncio.Queue(QUEUE_LENGTH)

    @property
    def depth(self) -> int:
        """Binds that no worker has taken yet."""
        return self._queue.qsize() + self._slow.qsize()

    async def submit(self, binds: Sequence[Bind], *, cycle: int) -> None:
        """Hand over the binds of a cycle; waits while the queue is full, so that decisions do not outrun the server."""
        for bind in binds:
            slow = self._pre_binder is not None and self._pre_binder.needs(bind)
            await (self._slow if slow else self._queue).put(_Order(bind, cycle))

    async def run(self) -> None:
        """Send binds until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._workers):
                tasks.create_task(self._work(), name=f"bind-{number}")
            if self._pre_binder is not None:
                for number in range(SLOW_WORKERS):
                    tasks.create_task(self._prepare_and_bind(self._pre_binder), name=f"pre-bind-{number}")

    async def _prepare_and_bind(self, pre_binder: PreBinder) -> None:
        while True:
            order = await self._slow.get()
            started = self._clock.monotonic()
            try:
                await pre_binder.pre_bind(order.bind)
            except PreBindError as error:
                await self._not_prepared(order, error)
            except Exception as error:  # a defect here must cost one bind, not the worker
                log.exception("preparing %s for %s failed unexpectedly", order.bind.task.key, order.bind.node)
                await self._not_prepared(order, PreBindError(f"{type(error).__name__}: {error}"))
            else:
                self._outcomes.prepared(order.bind, self._clock.monotonic() - started)
                await self._bind(order, pre_binder)
            self._slow.task_done()

    async def _not_prepared(self, order: _Order, error: PreBindError) -> None:
        task = order.bind.task
        message = f"execute preBind for pod {task.key} failed: {error}, resync the task"
        self._outcomes.refused(order.bind, order.cycle, error)
        await self._make_known(order.bind, message)

    async def _work(self) -> None:
        while True:
            for order in await self._take():
                await self._bind(order)
                self._queue.task_done()

    async def _take(self) -> list[_Order]:
        orders = [await self._queue.get()]
        while len(orders) < self._batch and not self._queue.empty():
            orders.append(self._queue.get_nowait())
        return orders

    async def _bind(self, order: _Order, pre_binder: PreBinder | None = None) -> None:
        bind = order.bind
        started = self._clock.monotonic()
        try:
            await self._client.create(
                PODS, binding(bind), bind.task.namespace, name=bind.task.name, subresource="binding"
            )
        except KubeError as error:
            self._outcomes.took(self._clock.monotonic() - started)
            # Before anybody learns of it: the pod's next attempt must not lose what it prepares to this one's end.
            await _end(pre_binder, bind, bound=_may_be_carried_out(error))
            self._outcomes.refused(bind, order.cycle, error)
            await self._make_known(bind, f"failed to bind to node {bind.node}: {error}")
        except Exception as error:  # a defect here must cost one bind, not the worker
            log.exception("bind of %s to %s failed unexpectedly", bind.task.key, bind.node)
            await _end(pre_binder, bind, bound=True)
            self._outcomes.refused(bind, order.cycle, error)
        else:
            self._outcomes.took(self._clock.monotonic() - started)
            self._outcomes.bound(bind, order.cycle)
            self._placements.bound(bind)
            await _end(pre_binder, bind, bound=True)

    async def _make_known(self, bind: Bind, message: str) -> None:
        log.warning("%s: %s", bind.task.key, message)
        self._events.pod(bind.task, "Warning", "FailedScheduling", message)
        await self._conditions.unscheduled(bind.task, "SchedulerError", message)


async def _end(pre_binder: PreBinder | None, bind: Bind, *, bound: bool) -> None:
    """Gives back what was prepared: all of it, or what was only held until the pod is bound, as it may be."""
    if pre_binder is not None:
        await (pre_binder.settle(bind) if bound else pre_binder.roll_back(bind))


def _may_be_carried_out(error: KubeError) -> bool:
    """Whether a failed request may have had its effect all the same."""
    return not isinstance(error, ApiError) or isinstance(error, ServerError)


def binding(bind: Bind) -> JsonObject:
    """The body of a bind; the UID makes sure that it is this pod and not another of its name."""
    task: TaskRef = bind.task
    metadata: JsonObject = {"namespace": task.namespace, "name": task.name, "uid": task.uid}
    if bind.annotations:
        metadata["annotations"] = dict(bind.annotations)
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": bind.node},
    }
