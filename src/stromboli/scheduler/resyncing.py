"""Finding out what became of a pod when the answer about it was a failure, or none (spec 04 section 18).

The pod is fetched until the server answers. Gone, or another pod of its name: the mirror forgets it. Still there: what
the mirror assumed about it is undone if the assumption is what has failed, and what the server says takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

from stromboli.api import core
from stromboli.api.kinds import PODS
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Observer
from stromboli.kube.errors import NotFound
from stromboli.scheduler.core.results import TaskRef

_decode_pod = partial(core.decode, core.Pod)


class Truth(Protocol):
    """Who learns the truth about a pod. Called on the event loop."""

    def pod_is(self, task: TaskRef, pod: core.Pod, *, undo: bool) -> None:
        """The server has the pod like this: with ``undo`` revert what was assumed, then take this in."""
        ...

    def pod_is_gone(self, task: TaskRef) -> None:
        """There is no pod of this name and UID."""
        ...


@dataclass(frozen=True, slots=True)
class _Doubt:
    task: TaskRef
    undo: bool


class Resync:
    """Pods to fetch, one worker, back-off for each pod."""

    def __init__(
        self, client: Client, truth: Truth, *, observer: Observer | None = None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._client = client
        self._truth = truth
        self._controller = Controller[_Doubt](
            "scheduler-resync", self._reconcile, workers=4, observer=observer, clock=clock
        )

    def enqueue(self, task: TaskRef, *, undo: bool = True) -> None:
        """Fetch this pod as soon as possible. Without ``undo`` a bind or eviction under way stays assumed."""
        self._controller.enqueue(_Doubt(task, undo))

    async def run(self) -> None:
        """Fetch until cancelled."""
        await self._controller.run()

    async def _reconcile(self, doubt: _Doubt) -> None:
        task = doubt.task
        try:
            pod = await self._client.get(PODS, task.name, task.namespace, decode=_decode_pod)
        except NotFound:
            self._truth.pod_is_gone(task)
            return
        if pod.uid == task.uid:
            self._truth.pod_is(task, pod, undo=doubt.undo)
        else:
            self._truth.pod_is_gone(task)
