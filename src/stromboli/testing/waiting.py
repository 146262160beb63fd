"""Waiting for a condition in tests, instead of sleeping and hoping."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

POLL_SECONDS = 0.005


async def eventually(condition: Callable[[], object], *, timeout: float = 10.0, what: str = "") -> None:
    """Return as soon as ``condition()`` is true; ``AssertionError`` when it is not within ``timeout`` seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout
    while not condition():
        if loop.time() > end:
            raise AssertionError(f"{what or 'the condition'} did not come true within {timeout:g} s")
        await asyncio.sleep(POLL_SECONDS)
