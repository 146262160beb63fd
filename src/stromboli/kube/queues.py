"""The work queue between what happens in the cluster and who reacts to it.

Invariants (those of every Kubernetes controller):

* A key is in the queue at most once, however often it is added.
* A key is never handed to two workers at a time. Added while it is being worked on, it comes back after ``done``.
* Nothing added is forgotten: after an ``add`` there is a later ``get`` of that key, unless the queue is shut down.

A wish is never put off by another one: a key that waits for its time is handed out at once when it is added, and the
earliest of several times counts, so a key that is added with a delay again and again comes when it was first to come.

Memory is bounded by the number of distinct keys. Delays need no task of their own: one timer, for the earliest key.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from stromboli.kube.clocks import SYSTEM_CLOCK, Clock, Timer

K = TypeVar("K", bound=Hashable)

LEAST_SWEPT = 64
"""Outdated times that are not worth looking for."""


class ShutDown(Exception):
    """The queue is shut down and everything in it was handed out."""


class WorkQueue(Generic[K]):
    """De-duplicating queue with delays and per-key back-off (5 ms doubling to 1000 s unless told otherwise)."""

    def __init__(
        self, *, first_backoff: float = 0.005, max_backoff: float = 1000.0, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._first_backoff = first_backoff
        self._max_backoff = max_backoff
        self._clock = clock
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()  # to be worked on: in _ready, or in _processing and added again
        self._processing: set[K] = set()
        self._failures: dict[K, int] = {}
        self._due: dict[K, float] = {}
        self._delayed: list[tuple[float, int, K]] = []  # heap; an entry counts only if _due agrees with it
        self._order = itertools.count()
        self._timer: Timer | None = None
        self._timer_at = float("inf")
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._shut_down = False

    def __len__(self) -> int:
        """Keys ready to be worked on, without delayed ones."""
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """Keys waiting for their time."""
        return len(self._due)

    @property
    def unfinished(self) -> int:
        """Keys ready, delayed or being worked on; zero means that there is nothing left to do."""
        return len(self._ready) + len(self._due) + len(self._processing)

    @property
    def is_shut_down(self) -> bool:
        """Whether :meth:`shut_down` was called."""
        return self._shut_down

    def add(self, key: K) -> None:
        """Ask for ``key`` to be worked on as soon as possible. Does nothing once shut down."""
        if self._shut_down or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._make_ready(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Ask for ``key`` after ``seconds``. Of several such wishes the earliest counts."""
        if self._shut_down:
            return
        if seconds <= 0:
            self.add(key)
            return
        moment = self._clock.monotonic() + seconds
        if self._due.get(key, float("inf")) <= moment:
            return
        self._due[key] = moment
        heapq.heappush(self._delayed, (moment, next(self._order), key))
        self._drop_most_outdated()
        self._set_timer()

    def add_rate_limited(self, key: K, *, at_most: float = float("inf")) -> float:
        """Ask for ``key`` after its back-off, which doubles with every call until :meth:`forget`; returns the delay.

        ``at_most`` seconds bound this one delay, for a failure that passes by itself.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(at_most, self._max_backoff, self._first_backoff * 2.0 ** min(failures, 64))
        self.add_after(key, delay)
        return delay

    def failures(self, key: K) -> int:
        """How often ``key`` was added with a back-off since it was last forgotten."""
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Start the back-off of ``key`` anew."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key; the caller must call :meth:`done` with it. Raises :class:`ShutDown` at the end."""
        while not self._ready:
            if self._shut_down:
                raise ShutDown
            await self._wait()
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: K) -> None:
        """The work on ``key`` has ended, well or not."""
        self._processing.discard(key)
        if key in self._dirty:
            self._make_ready(key)

    def shut_down(self) -> None:
        """Accept nothing more and drop what is delayed. What is ready is still handed out, then ``get`` raises."""
        self._shut_down = True
        self._due.clear()
        self._delayed.clear()
        if self._timer:
            self._timer.cancel()
        while self._waiters:
            self._wake_one()

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and self._ready:
                self._wake_one()  # this one was told of a key but will not take it
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _make_ready(self, key: K) -> None:
        self._ready.append(key)
        self._wake_one()

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _set_timer(self) -> None:
        self._drop_outdated()
        earliest = self._delayed[0][0] if self._delayed else float("inf")
        if self._timer and self._timer_at <= earliest:
            return
        if self._timer:
            self._timer.cancel()
        self._timer_at = earliest
        self._timer = self._clock.call_later(earliest - self._clock.monotonic(), self._promote)

    def _promote(self) -> None:
        self._timer, self._timer_at = None, float("inf")
        now = self._clock.monotonic()
        self._drop_outdated()
        while self._delayed and self._delayed[0][0] <= now:
            _, _, key = heapq.heappop(self._delayed)
            del self._due[key]
            self.add(key)
            self._drop_outdated()
        if self._delayed:
            self._set_timer()

    def _drop_outdated(self) -> None:
        while self._delayed and self._due.get(self._delayed[0][2]) != self._delayed[0][0]:
            heapq.heappop(self._delayed)

    def _drop_most_outdated(self) -> None:
        """Far times that nearer ones have replaced would stay until they come; most of the heap is never such."""
        if len(self._delayed) > 2 * len(self._due) + LEAST_SWEPT:
            self._delayed = [entry for entry in self._delayed if self._due.get(entry[2]) == entry[0]]
            heapq.heapify(self._delayed)
