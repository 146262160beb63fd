"""Time as a dependency, so that waiting can be tested without waiting (``stromboli.testing.clocks.FakeClock``)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol


class Timer(Protocol):
    """A callback that has not been called yet."""

    def cancel(self) -> None:
        """Do not call it. Harmless when it was called already."""
        ...


class Clock(Protocol):
    """Wall time, steady time and waiting. All in seconds."""

    def time(self) -> float:
        """Seconds since the Unix epoch. May jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment. Never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after ``seconds``."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call ``callback`` on the event loop after ``seconds``."""
        ...


class SystemClock:
    """The machine's own clock."""

    def time(self) -> float:
        """Seconds since the Unix epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds on the steady clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the event loop."""
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call back on the running event loop."""
        return asyncio.get_running_loop().call_later(seconds, callback)


SYSTEM_CLOCK = SystemClock()
"""The clock that everything uses unless told otherwise."""


def deadline(clock: Clock, seconds: float) -> AbstractAsyncContextManager[object]:
    """``asyncio.timeout`` on a given clock: ``TimeoutError`` when the body takes longer than ``seconds``."""
    return asyncio.timeout(seconds) if isinstance(clock, SystemClock) else _deadline(clock, seconds)


@asynccontextmanager
async def _deadline(clock: Clock, seconds: float) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as scope:
        timer = clock.call_later(seconds, lambda: scope.reschedule(loop.time()))
        try:
            yield
        finally:
            timer.cancel()
