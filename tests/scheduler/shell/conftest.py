"""A fake API server with an open default queue."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from stromboli.testing import builders
from stromboli.testing.apiserver import FakeApiServer
from tests.scheduler.shell.stage import Stage


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with FakeApiServer() as server, await server.client() as client:
        stage = Stage(server, client)
        stage.put(builders.queue("default").state("Open"), builders.queue("root").state("Open"))
        try:
            yield stage
        finally:
            await stage.kill()
