"""The queues that every cluster has: created if missing, by whomever, with patience."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.process.running import StartupError
from stromboli.scheduler.seeding import ATTEMPTS, ensure_queues
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock


class Impatient(FakeClock):
    """Does not really wait, but remembers for how long it would have."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
async def site() -> AsyncIterator[tuple[FakeApiServer, Client]]:
    async with FakeApiServer() as server, await server.client() as client:
        yield server, client


async def test_missing_queues_are_made_as_specified(site: tuple[FakeApiServer, Client]) -> None:
    server, client = site
    await ensure_queues(client, "mine", clock=Impatient())
    assert server.get(kinds.QUEUES, "root")["spec"] == {"weight": 1, "reclaimable": False}
    assert server.get(kinds.QUEUES, "mine")["spec"] == {"weight": 1, "reclaimable": True}


async def test_queues_that_exist_are_left_as_they_are(site: tuple[FakeApiServer, Client]) -> None:
    server, client = site
    for name in ("root", "default"):
        server.put(kinds.QUEUES, {"metadata": {"name": name}, "spec": {"weight": 7}})
    await ensure_queues(client, "default", clock=Impatient())
    assert server.get(kinds.QUEUES, "default")["spec"] == {"weight": 7}
    assert server.count("create", kinds.QUEUES) == 0


async def test_refusals_are_tried_again_about_every_second(site: tuple[FakeApiServer, Client]) -> None:
    server, client = site
    server.faults.fail(403, verb="create", kind=kinds.QUEUES, times=3, message="webhook is not up yet")
    clock = Impatient()
    await ensure_queues(client, "default", clock=clock)
    assert len(clock.slept) == 3
    assert all(1.0 <= seconds <= 1.1 for seconds in clock.slept)


async def test_queue_that_cannot_be_had_is_fatal_with_one_line(site: tuple[FakeApiServer, Client]) -> None:
    server, client = site
    server.faults.fail(403, verb="create", kind=kinds.QUEUES, times=None, message="not allowed")
    clock = Impatient()
    with pytest.raises(
        StartupError, match="queue root is missing and could not be created in 60 attempts: not allowed"
    ):
        await ensure_queues(client, "default", clock=clock)
    assert len(clock.slept) == ATTEMPTS - 1
