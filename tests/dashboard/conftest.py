"""A fake API server with the canned cluster in it, and the page over it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest_asyncio

from stromboli.api import kinds
from stromboli.dashboard.following import Follower
from stromboli.dashboard.measuring import PREFIX, DashboardMetrics
from stromboli.dashboard.serving import application
from stromboli.telemetry.listening import Address, listening
from stromboli.telemetry.metrics import Metrics
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.waiting import eventually
from tests.dashboard.canned import documents

BY_NAME = {
    kind.kind: kind
    for kind in (
        kinds.QUEUES,
        kinds.POD_GROUPS,
        kinds.JOBS,
        kinds.NODES,
        kinds.HYPER_NODES,
        kinds.EVENTS,
        kinds.PODS,
    )
}


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """The canned cluster."""
    async with FakeApiServer() as running:
        for document in documents():
            running.put(BY_NAME[document["kind"]], document)
        yield running


@asynccontextmanager
async def following(server: FakeApiServer) -> AsyncIterator[Follower]:
    """A follower of that server that has listed everything it can."""
    async with await server.client() as client:
        follower = Follower(client, server.url)
        task = asyncio.create_task(follower.run())
        try:
            await eventually(lambda: follower.missing() is None, what="everything has been asked for")
            yield follower
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest_asyncio.fixture
async def follower(server: FakeApiServer) -> AsyncIterator[Follower]:
    """Who follows the canned cluster."""
    async with following(server) as running:
        yield running


@pytest_asyncio.fixture
async def registry() -> Metrics:
    """The series of the page."""
    return Metrics(PREFIX)


@pytest_asyncio.fixture
async def page(follower: Follower, registry: Metrics) -> AsyncIterator[aiohttp.ClientSession]:
    """A browser's connection to the page."""
    metrics = DashboardMetrics(registry)
    metrics.follow(follower)
    app = application(follower, metrics, allowed_hosts=["batch.example"])
    async with (
        listening(app, Address("127.0.0.1", 0), stop_seconds=0.2) as bound,
        aiohttp.ClientSession(f"http://{bound}") as session,
    ):
        yield session
