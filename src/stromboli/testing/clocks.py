"""A clock that stands still until a test moves it.

>>> clock = FakeClock()
>>> async with asyncio.TaskGroup() as tasks:
...     tasks.create_task(elector.run(work))
...     await clock.advance(15)      # everything due within 15 s runs, in order, without any real waiting

``time()`` and ``monotonic()`` move together; ``jump()`` moves only the wall clock, as an operator or NTP would.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable

from stromboli.kube.clocks import Timer

SETTLE_ROUNDS = 50
"""Turns of the event loop that tasks get to react to one moment. Ready tasks need one or two each."""


class FakeTimer:
    """One callback waiting on a :class:`FakeClock`."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        """Do not call it."""
        self.callback = None


class FakeClock:
    """A :class:`stromboli.kube.clocks.Clock` under the test's control."""

    def __init__(self, *, start: float = 1_700_000_000.0) -> None:
        self._wall = start
        self._steady = 1000.0
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._order = itertools.count()

    def time(self) -> float:
        """Wall time; starts in November 2023."""
        return self._wall

    def monotonic(self) -> float:
        """Steady time."""
        return self._steady

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back when the test has moved the clock by ``seconds``."""
        timer = FakeTimer(callback)
        heapq.heappush(self._timers, (self._steady + max(0.0, seconds), next(self._order), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        """Return when the test has moved the clock by ``seconds``; a sleep of nothing only yields."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: _finish(done))
        try:
            await done
        finally:
            timer.cancel()

    @property
    def sleepers(self) -> int:
        """How many timers and sleeps are waiting."""
        return sum(1 for _, _, timer in self._timers if timer.callback is not None)

    def jump(self, seconds: float) -> None:
        """Move the wall clock only."""
        self._wall += seconds

    async def advance(self, seconds: float) -> None:
        """Move both clocks, stopping at every timer on the way so that its consequences happen at its moment."""
        await self.settle()
        end = self._steady + seconds
        while self._timers and self._timers[0][0] <= end:
            moment, _, timer = heapq.heappop(self._timers)
            callback, timer.callback = timer.callback, None
            if callback is None:
                continue
            self._move_to(moment)
            callback()
            await self.settle()
        self._move_to(end)
        await self.settle()

    async def settle(self) -> None:
        """Let every task that is ready run until it waits for something."""
        for _ in range(SETTLE_ROUNDS):
            await asyncio.sleep(0)

    def _move_to(self, moment: float) -> None:
        step = max(0.0, moment - self._steady)
        self._steady += step
        self._wall += step


class SkippingClock(FakeClock):
    """A clock on which every sleep is over at once: time moves by as much, and ``slept`` remembers it.

    For code that waits on its own and alone, such as a request that is repeated after a Retry-After.
    """

    def __init__(self, *, start: float = 1_700_000_000.0) -> None:
        super().__init__(start=start)
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Move the clock and return."""
        self.slept.append(seconds)
        self._move_to(self._steady + max(0.0, seconds))
        await asyncio.sleep(0)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
