"""Writing only the latest of what was asked for: one write a key at a time, spaced, bounded by the number of keys.

Decisions come every cycle, writes take as long as the API server takes. What has not been written when the next
decision about the same object arrives is replaced (or merged), never queued behind (pain P37).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Observer, Result

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _replace(_old: V, new: V) -> V:
    return new


class LatestWriter(Generic[K, V]):
    """Calls ``write(key, value)`` with the latest value of each key.

    ``merge(old, new)`` combines a value that was not written yet with its successor; the default replaces it. Two
    writes of one key start at least ``spacing`` seconds apart. With ``delay`` a value waits so many seconds for what
    may make it needless (:meth:`forget`) or replace it, counted from the first that was put. ``write`` deals with its
    own failures: it is not called again until the next :meth:`put`.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[K, V], Awaitable[None]],
        *,
        workers: int,
        spacing: float = 0.0,
        delay: float = 0.0,
        merge: Callable[[V, V], V] = _replace,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._write = write
        self._spacing = spacing
        self._delay = delay
        self._merge = merge
        self._clock = clock
        self._waiting: dict[K, V] = {}
        self._written_at: dict[K, float] = {}
        self._controller = Controller[K](
            name, self._reconcile, workers=workers, max_retries=0, observer=observer, clock=clock
        )

    def put(self, key: K, value: V, *, at_once: bool = False) -> None:
        """Ask for ``value`` to be written under ``key``, without the delay if ``at_once``."""
        waiting = self._waiting.pop(key, None)
        self._waiting[key] = value if waiting is None else self._merge(waiting, value)
        self._controller.queue.add_after(key, 0 if at_once else self._delay)

    def waiting(self, key: K) -> V | None:
        """What is to be written under ``key``."""
        return self._waiting.get(key)

    def forget(self, key: K) -> None:
        """The object is gone, or there is nothing more to say about it: what waits for it is dropped."""
        self._waiting.pop(key, None)
        self._written_at.pop(key, None)

    def __len__(self) -> int:
        """Keys with something to write."""
        return len(self._waiting)

    async def run(self) -> None:
        """Write until cancelled."""
        await self._controller.run()

    async def _reconcile(self, key: K) -> Result | None:
        if key not in self._waiting:
            return None
        wait = self._written_at.get(key, float("-inf")) + self._spacing - self._clock.monotonic()
        if wait > 0:
            return Result(requeue_after=wait)
        value = self._waiting.pop(key)
        if self._spacing:
            self._written_at[key] = self._clock.monotonic()
        await self._write(key, value)
        return None
