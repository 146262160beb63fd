"""Telling which pods were bound: each pod by itself, as specified, or those of a PodGroup together.

An event for every pod is half of what a scheduler writes for it, and nobody reads a thousand of them. So pods of large
PodGroups are told together, in one event of a second on their PodGroup (ADR 17); where a pod runs stands on the pod
itself all the same. ``--scheduled-events`` (an addition of ours) chooses one way for all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from stromboli.api.reasons import EventReason, assigned
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.scheduler.core.results import Bind
from stromboli.scheduler.eventing import PodEvents

FOLD_SECONDS = 1.0
MOST_PODS = 50
"""Pods of a PodGroup that are told one by one."""
MOST_NODES = 10
"""Nodes that one event names."""


class Placements(Protocol):
    """Who is told of bound pods."""

    def bound(self, bind: Bind) -> None:
        """The API server has accepted the bind."""
        ...

    async def run(self) -> None:
        """Work until cancelled, if there is anything to do."""
        ...


class EachPod:
    """An event on every pod (spec 04 section 19)."""

    def __init__(self, events: PodEvents) -> None:
        self._events = events

    def bound(self, bind: Bind) -> None:
        """Tell the pod where it is."""
        message = assigned(bind.task.namespace, bind.task.name, bind.node)
        self._events.pod(bind.task, "Normal", EventReason.SCHEDULED, message)

    async def run(self) -> None:
        """Everything is told at once."""


class ByPodGroup:
    """An event on the PodGroup about all its pods that were bound within a second."""

    def __init__(self, events: PodEvents, uid_of: Callable[[str], str | None], clock: Clock = SYSTEM_CLOCK) -> None:
        self._events = events
        self._uid_of = uid_of
        self._clock = clock
        self._nodes: dict[tuple[str, str], Counter[str]] = {}
        """By job id and UID of the PodGroup, how many pods were bound to which node since the group was last told."""
        self._some = asyncio.Event()

    def bound(self, bind: Bind) -> None:
        """Remember it for the next event of its PodGroup."""
        uid = self._uid_of(bind.task.job_id)
        if uid is not None:
            self._nodes.setdefault((bind.task.job_id, uid), Counter())[bind.node] += 1
            self._some.set()

    async def run(self) -> None:
        """Tell PodGroups until cancelled."""
        while True:
            await self._some.wait()
            await self._clock.sleep(FOLD_SECONDS)
            self._some.clear()
            self.tell()

    def tell(self) -> None:
        """Say now what is not said yet."""
        nodes, self._nodes = self._nodes, {}
        for (job_id, uid), counts in nodes.items():
            if self._uid_of(job_id) == uid:  # another group of the name has had nothing of it
                self._events.pod_group(job_id, uid, "Normal", EventReason.PODS_SCHEDULED, sentence(counts))


class BySize:
    """Pods of small PodGroups each, pods of large ones together."""

    def __init__(self, small: Placements, large: Placements, size_of: Callable[[str], int]) -> None:
        self._small = small
        self._large = large
        self._size_of = size_of

    def bound(self, bind: Bind) -> None:
        """Tell the pod, or have it told with the others of its PodGroup."""
        told = self._large if self._size_of(bind.task.job_id) > MOST_PODS else self._small
        told.bound(bind)

    async def run(self) -> None:
        """Tell those that are told together until cancelled."""
        await self._small.run()
        await self._large.run()


def sentence(counts: Counter[str]) -> str:
    """``12 pods assigned: 4 to n1, 4 to n2, 4 to n3``, the fullest nodes first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{count} to {node}" for node, count in ordered[:MOST_NODES])
    rest = len(ordered) - MOST_NODES
    more = f", and {sum(count for _, count in ordered[MOST_NODES:])} to {rest} more nodes" if rest > 0 else ""
    total = counts.total()
    return f"{total} pod{'s' if total > 1 else ''} assigned: {named}{more}"
