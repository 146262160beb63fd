"""A fake API server and a client of it, for every test of this room that asks."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from stromboli.kube.client import Client
from stromboli.testing.apiserver import FakeApiServer


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as running:
        yield running


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[Client]:
    async with await server.client() as connected:
        yield connected
