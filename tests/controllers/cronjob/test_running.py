"""The controller with its queue and timers, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Any

from stromboli.api import kinds
from stromboli.controllers.cronjob.controller import LONGEST_WAIT, CronJobController
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock
from tests.controllers.cronjob.stand import cron_job, seconds
from tests.controllers.stage import Stage


@asynccontextmanager
async def running(time: str, **spec: Any) -> AsyncIterator[tuple[Stage, FakeClock]]:
    clock = FakeClock(start=seconds(time))
    async with FakeApiServer(bookmark_interval=60.0) as server, await server.client() as client:
        scene = Stage(server, client, clock)
        server.put(kinds.CRON_JOBS, cron_job(**spec))
        await scene.run(lambda informers: CronJobController(client, informers, scene.events, clock=clock, zone=UTC))
        try:
            yield scene, clock
        finally:
            await scene.stop()


def last(scene: Stage) -> str | None:
    found: str | None = (scene.server.get(kinds.CRON_JOBS, "cj", "default").get("status") or {}).get("lastScheduleTime")
    return found


async def started(scene: Stage, clock: FakeClock, time: str) -> None:
    """Move the clock to just after that start, and wait until it is on record."""
    await clock.advance(seconds(time) + 1 - clock.time())
    await scene.until(lambda: last(scene) == f"2025-03-11T{time}:00Z", f"the start of {time}")


async def test_it_starts_again_and_again() -> None:
    async with running("10:03") as (scene, clock):
        for time in ("10:05", "10:10", "10:15"):
            await started(scene, clock, time)
        assert len(scene.names_of(kinds.JOBS)) == 3
        assert scene.events.reasons("cj") == ["SuccessfulCreate"] * 3


async def test_a_clock_that_is_put_forward_is_noticed() -> None:
    async with running("10:03", schedule="0 * * * *") as (scene, clock):
        await clock.advance(1)
        clock.jump(seconds("11:00") - clock.time())  # timers do not notice
        await clock.advance(LONGEST_WAIT)
        await scene.until(lambda: last(scene) == "2025-03-11T11:00:00Z")


async def test_a_finished_job_lets_a_forbidden_start_happen_at_once() -> None:
    async with running("10:04", concurrencyPolicy="Forbid") as (scene, clock):
        await started(scene, clock, "10:05")
        await clock.advance(330)
        await scene.until(lambda: "ForbidConcurrent" in scene.events.reasons("cj"))
        [job] = scene.server.objects(kinds.JOBS)
        scene.server.put(kinds.JOBS, {**job, "status": {"state": {"phase": "Failed"}}})
        await scene.until(lambda: last(scene) == "2025-03-11T10:10:00Z")
