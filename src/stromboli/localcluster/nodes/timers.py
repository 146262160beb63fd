"""One heap of due times for everything that happens later on simulated nodes.

A task for each of 20,000 pods would cost more than the pods; one heap entry does not. A key has at most one due time:
setting it again replaces the earlier one, whose heap entry is dropped when it comes up.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Timers(Generic[K]):
    """Due times by key. ``now`` is the clock they are measured on, in seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._heap: list[tuple[float, int, K]] = []
        self._current: dict[K, int] = {}
        self._counter = 0
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._current)

    def __contains__(self, key: K) -> bool:
        return key in self._current

    def set(self, key: K, when: float) -> None:
        """Make ``key`` due at ``when``, in place of any earlier due time of it."""
        self._counter += 1
        self._current[key] = self._counter
        heapq.heappush(self._heap, (when, self._counter, key))
        if self._heap[0][1] == self._counter:
            self._changed.set()

    def cancel(self, key: K) -> None:
        """Forget the due time of ``key``, if there is one."""
        self._current.pop(key, None)

    def next_due(self) -> float | None:
        """The earliest due time, or None when nothing is waited for."""
        while self._heap and self._current.get(self._heap[0][2]) != self._heap[0][1]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, limit: int | None = None) -> list[K]:
        """Keys that are due, earliest first, at most ``limit``; they are no longer waited for."""
        due: list[K] = []
        while (limit is None or len(due) < limit) and (when := self.next_due()) is not None and when <= self._now():
            key = heapq.heappop(self._heap)[2]
            del self._current[key]
            due.append(key)
        return due

    async def wait_due(self) -> None:
        """Return when at least one key is due."""
        while True:
            self._changed.clear()
            when = self.next_due()
            delay = None if when is None else when - self._now()
            if delay is not None and delay <= 0:
                return
            try:
                async with asyncio.timeout(delay):
                    await self._changed.wait()
            except TimeoutError:
                continue
