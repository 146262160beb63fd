"""The way into the mirror: changes are applied at once, or wait while a cycle runs.

A cycle decides over a frozen mirror, in a thread of its own, while the event loop goes on listening. Everything that
would change the mirror meanwhile (watch events, outcomes of binds) is kept in order and applied when the cycle has
ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ParamSpec

P = ParamSpec("P")

log = logging.getLogger(__name__)

SLICE = 500
"""Changes applied before other tasks of the event loop get their turn."""


class Feed:
    """Applies changes to the mirror in the order of their arrival; only used on the event loop."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], object]] = deque()
        self._frozen = False
        self._urgent = asyncio.Event()
        self.applied = 0
        """Changes applied so far."""

    @property
    def depth(self) -> int:
        """Changes that wait for the end of the cycle."""
        return len(self._waiting)

    def submit(self, change: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call ``change(*args, **kwargs)`` now, or after the running cycle."""
        if self._frozen or self._waiting:
            self._waiting.append(lambda: change(*args, **kwargs))
        else:
            self._apply(lambda: change(*args, **kwargs))

    @asynccontextmanager
    async def frozen(self) -> AsyncIterator[None]:
        """Nothing is applied while the block runs; what came meanwhile is applied before the context ends."""
        if self._frozen:
            raise RuntimeError("a cycle is running already")
        self._frozen = True
        self._urgent.clear()
        try:
            yield
        finally:
            self._frozen = False
            await self._drain()

    def hurry(self) -> None:
        """What was applied just now is worth a cycle before its time."""
        self._urgent.set()

    async def wait_urgent(self) -> None:
        """Return once :meth:`hurry` has been called since the latest cycle began."""
        await self._urgent.wait()

    async def _drain(self) -> None:
        while self._waiting:
            for _ in range(min(SLICE, len(self._waiting))):
                self._apply(self._waiting.popleft())
            await asyncio.sleep(0)

    def _apply(self, change: Callable[[], object]) -> None:
        self.applied += 1
        try:
            change()
        except Exception:  # one change that fails must not cost those behind it
            log.exception("a change could not be applied to the mirror")
