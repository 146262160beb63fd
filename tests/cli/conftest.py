"""A fake API server for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from stromboli.testing.apiserver import FakeApiServer


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """An empty API server."""
    async with FakeApiServer() as running:
        yield running
