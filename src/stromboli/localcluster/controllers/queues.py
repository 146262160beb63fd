"""A de-duplicating queue with delays and back-off, for work inside the server.

Keys that are waiting are handed out once, in the order in which they came; a key added while it is being worked on is
handed out again afterwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable
from typing import Generic, TypeVar

from stromboli.localcluster.nodes.timers import Timers

K = TypeVar("K", bound=Hashable)

FIRST_RETRY = 0.05
LAST_RETRY = 5.0


class Queue(Generic[K]):
    """Keys to work on; for a single worker."""

    def __init__(self) -> None:
        self._ready: dict[K, None] = {}
        self._later: Timers[K] = Timers(time.monotonic)
        self._wake = asyncio.Event()
        self._failures: dict[K, int] = {}

    def add(self, key: K) -> None:
        """Work on ``key`` soon."""
        self._ready[key] = None
        self._wake.set()

    def add_after(self, key: K, delay: float) -> None:
        """Work on ``key`` in ``delay`` seconds, or earlier if somebody adds it."""
        self._later.set(key, time.monotonic() + delay)
        self._wake.set()

    def succeeded(self, key: K) -> None:
        """Forget earlier failures of ``key``."""
        self._failures.pop(key, None)

    def failed(self, key: K) -> None:
        """Try ``key`` again, later each time."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_after(key, min(FIRST_RETRY * 2.0 ** min(failures, 16), LAST_RETRY))

    async def take(self) -> K:
        """The next key, as soon as there is one."""
        while True:
            for key in self._later.pop_due():
                self._ready[key] = None
            if self._ready:
                key = next(iter(self._ready))
                del self._ready[key]
                return key
            self._wake.clear()
            due = self._later.next_due()
            try:
                async with asyncio.timeout(None if due is None else max(due - time.monotonic(), 0)):
                    await self._wake.wait()
            except TimeoutError:
                continue
