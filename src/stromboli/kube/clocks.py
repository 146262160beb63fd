"""Time as a dependency, so that waiting can be tested without waiting (``stromboli.testing.clocks.FakeClock``)."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


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


SYSTEM_CLOCK = SystemClock()
"""The clock that everything uses unless told otherwise."""
