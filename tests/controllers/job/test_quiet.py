"""Jobs to which nothing happens cost nothing: no write in a minute, whatever phase they are in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from stromboli.api import kinds
from stromboli.controllers.job.controller import JobController
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock
from tests.controllers.building import job
from tests.controllers.stage import Stage

WRITES = ("create", "update", "patch", "delete")


@asynccontextmanager
async def time_goes_on(clock: FakeClock, step: float = 0.1) -> AsyncIterator[None]:
    """While the block runs, time passes in steps of ``step`` seconds."""

    async def tick() -> None:
        while True:
            await clock.advance(step)
            await asyncio.sleep(0.005)

    task = asyncio.create_task(tick())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def writes(scene: Stage) -> list[tuple[str, str, str]]:
    """In the order in which they came."""
    return [(call.verb, str(call.kind), call.name) for call in scene.server.calls if call.verb in WRITES]


async def test_a_quiet_minute_of_jobs_has_no_writes() -> None:
    clock = FakeClock()
    async with FakeApiServer(bookmark_interval=60.0) as server, await server.client() as client:
        scene = Stage(server, client, clock)
        await scene.run(lambda informers: JobController(client, informers, scene.events, scene.numbers, clock=clock))
        try:
            async with time_goes_on(clock):
                await scene.running(job("runs").task("worker", 2).policy("PodEvicted", "RestartJob"), 2)
                await scene.running(job("ends").task("worker", 1).spec(plugins={"svc": []}), 1)
                scene.set_pod("ends-worker-0", "Succeeded", exit_code=0)
                await scene.until(lambda: scene.phase("ends") == "Completed")
                await scene.running(job("stops").task("worker", 1), 1)
                scene.command("AbortJob", "stops")
                await scene.until(lambda: scene.phase("stops") == "Aborted")
                scene.submit(job("waits").task("worker", 3).policy("PodPending", "AbortJob", timeout="3h"))
                await scene.admit("waits")
                await scene.until(lambda: scene.status("waits").get("pending") == 3)
                await settled(scene, "first")
                before = len(writes(scene))
                for _ in range(12):
                    await clock.advance(5)
                await settled(scene, "last")
            later = writes(scene)[before:]
            assert {name for verb, _, name in later if verb != "create"} <= {"last"}, later
            assert [kind for verb, kind, _ in later if verb == "create"] == [kinds.POD_GROUPS.plural]
        finally:
            await scene.stop()


async def settled(scene: Stage, mark: str) -> None:
    """A job put in last has had its first passes, so everything before it has had its own."""
    scene.submit(job(mark).task("worker", 1))
    await scene.until(lambda: scene.group(mark), f"the group of {mark}")
