"""Counters in a status wait a moment for those that follow; nothing else does, and none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.api.batch import Job
from stromboli.controllers.job import pacing, status
from stromboli.controllers.job.controller import JobController
from stromboli.controllers.job.executing import Executor
from stromboli.controllers.job.ledger import Ledger
from stromboli.controllers.job.operations import WriteStatus
from stromboli.kube.errors import ServerError
from stromboli.kube.json import JsonObject
from stromboli.kube.queues import WorkQueue
from stromboli.kube.stores import Key
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock
from tests.controllers.building import job
from tests.controllers.job.beginning import begin
from tests.controllers.job.test_quiet import time_goes_on
from tests.controllers.stage import RecordedEvents, RecordedNumbers, Stage

WAIT = pacing.LONGEST_WAIT
STORED: JsonObject = {"state": {"phase": "Running"}, "minAvailable": 4, "running": 2, "pending": 2}


def status_writes(server: FakeApiServer) -> int:
    return sum(call.subresource == "status" for call in server.called("patch", kinds.JOBS))


# -- one pass ----------------------------------------------------------------------------------------------------------


@dataclass
class Desk:
    """An executor before a stored job, and passes that wish to write a status."""

    server: FakeApiServer
    executor: Executor
    clock: FakeClock = field(default_factory=FakeClock)

    async def write(self, **changed: Any) -> float | None:
        """One pass that found ``changed``; for how long it has left its status to the next."""
        raw = self.server.get(kinds.JOBS, "job1", "default")
        done = await self.executor.perform(raw, Job.from_wire(raw), [WriteStatus({**STORED, **changed})])
        return done.again_in

    @property
    def stored(self) -> JsonObject:
        found: JsonObject = self.server.get(kinds.JOBS, "job1", "default")["status"]
        return found


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    clock = FakeClock()
    async with FakeApiServer() as server, await server.client() as client:
        server.put(kinds.JOBS, {**job().task("worker", 4).obj(), "status": STORED})
        yield Desk(server, Executor(client, Ledger(), RecordedEvents(), RecordedNumbers(), clock), clock)


async def test_counters_wait_from_their_first_difference_on_and_no_longer() -> None:
    async with desk() as one:
        assert await one.write(running=3, pending=1) == pytest.approx(WAIT)
        await one.clock.advance(0.4 * WAIT)
        assert await one.write(running=4, pending=0) == pytest.approx(0.6 * WAIT), "other counters are no new wait"
        assert status_writes(one.server) == 0
        await one.clock.advance(0.6 * WAIT)
        assert await one.write(running=4, pending=0) is None
        assert one.stored["running"] == 4
        assert await one.write(running=3, pending=1) == pytest.approx(WAIT), "the next have a wait of their own"


AT_ONCE: dict[str, JsonObject] = {
    "a phase": {"state": {"phase": "Completed"}},
    "a reason": {"state": {"phase": "Running", "reason": "QueueNotFound"}},
    "a version": {"version": 1},
    "a retry": {"retryCount": 1},
    "the size of the gang": {"minAvailable": 3},
    "a success that must not be run again": {"controlledResources": {"succeeded-worker": "0"}},
    "a marker of a plugin": {"controlledResources": {"plugin-svc": "svc"}},
    "a condition": {"conditions": [{"status": "Running", "lastTransitionTime": "2026-06-24T09:00:00Z"}]},
    "the age at the end": {"runningDuration": "5s"},
}


@pytest.mark.parametrize("changed", AT_ONCE.values(), ids=AT_ONCE.keys())
async def test_everything_else_is_written_at_once_and_takes_the_counters_along(changed: JsonObject) -> None:
    async with desk() as one:
        await one.write(running=3, pending=1)
        assert await one.write(running=3, pending=1, **changed) is None
        assert one.stored == {**STORED, "running": 3, "pending": 1, **changed}


def test_every_field_of_a_status_is_a_counter_or_written_at_once() -> None:
    told = pacing.COUNTERS | {field for changed in AT_ONCE.values() for field in changed}
    known = {info.alias or name for name, info in type(job().model().status).model_fields.items()}
    assert told == known


async def test_counters_that_come_back_to_what_is_stored_are_not_written() -> None:
    async with desk() as one:
        await one.write(running=3, pending=1)
        assert await one.write() is None
        await one.clock.advance(10 * WAIT)
        assert await one.write(running=3, pending=1) == pytest.approx(WAIT)
        assert status_writes(one.server) == 0


async def test_a_write_that_fails_is_still_due() -> None:
    async with desk() as one:
        await one.write(running=4, pending=0)
        await one.clock.advance(WAIT)
        one.server.faults.fail(500, verb="patch", kind=kinds.JOBS)
        with pytest.raises(ServerError):
            await one.write(running=4, pending=0)
        assert await one.write(running=4, pending=0) is None
        assert one.stored["running"] == 4


# -- a controller ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def scene_in_time() -> AsyncIterator[tuple[Stage, FakeClock, JobController]]:
    """A stage on a clock that only the test moves, with the waits of every day."""
    clock = FakeClock()
    async with FakeApiServer(bookmark_interval=60.0) as server, await server.client() as client:
        scene = Stage(server, client, clock)
        try:
            yield scene, clock, await begin(scene)
        finally:
            await scene.stop()


async def partly_running(scene: Stage, clock: FakeClock) -> None:
    """A gang of 2 of 4 runs, and what was to be said about it has been said."""
    async with time_goes_on(clock):
        scene.submit(job().task("worker", 4, minAvailable=2).spec(minSuccess=1))
        await scene.admit()
        await scene.until(lambda: len(scene.pods()) == 4)
        scene.set_pod("job1-worker-0", "Running")
        scene.set_pod("job1-worker-1", "Running")
        await scene.until(lambda: scene.phase() == "Running")
        await scene.until(lambda: (scene.status().get("running"), scene.status().get("pending")) == (2, 2))


async def test_the_last_counters_are_written_though_nothing_else_happens() -> None:
    async with scene_in_time() as (scene, clock, _):
        await partly_running(scene, clock)
        scene.set_pod("job1-worker-2", "Running")
        async with time_goes_on(clock):
            await scene.until(lambda: scene.status().get("running") == 3)


async def test_counters_are_written_while_pods_keep_changing() -> None:
    async with scene_in_time() as (scene, clock, _):
        await partly_running(scene, clock)
        async with time_goes_on(clock), asyncio.TaskGroup() as tasks:
            restless = tasks.create_task(keep_changing(scene))
            scene.set_pod("job1-worker-2", "Running")
            await scene.until(lambda: scene.status().get("running") == 3)
            restless.cancel()


async def keep_changing(scene: Stage) -> None:
    """Restarts of containers, which a job looks at."""
    for restarts in range(1_000_000):
        scene.set_pod("job1-worker-0", "Running", restarts=restarts)
        await asyncio.sleep(0.001)


def due_soon(queue: WorkQueue[Key], clock: FakeClock) -> bool:
    """Whether there is work other than a late look at pods that no scheduler has looked at."""
    end = clock.monotonic() + pacing.LONGEST_WAIT
    return queue.unfinished > queue.delayed or any(moment <= end for moment in queue._due.values())


async def test_a_phase_does_not_wait() -> None:
    async with scene_in_time() as (scene, clock, controller):
        await partly_running(scene, clock)
        queue = controller._controller.queue
        async with time_goes_on(clock):
            await scene.until(lambda: not due_soon(queue, clock))
        scene.set_pod("job1-worker-0", "Succeeded", exit_code=0)
        await scene.until(lambda: due_soon(queue, clock))
        await clock.advance(pacing.SHORTEST_DELAY)
        await scene.until(lambda: scene.phase() == "Completed")


async def test_a_controller_that_dies_while_counters_wait_is_followed_by_one_that_counts() -> None:
    async with scene_in_time() as (scene, clock, _):
        await partly_running(scene, clock)
        scene.set_pod("job1-worker-2", "Running")
        await clock.advance(0.2)
        await scene.stop()
        await begin(scene)
        async with time_goes_on(clock):
            await scene.until(lambda: scene.status().get("running") == 3)


async def test_a_gang_that_starts_pod_by_pod_is_written_a_few_times() -> None:
    gang = 40
    async with scene_in_time() as (scene, clock, _):
        async with time_goes_on(clock):
            scene.submit(job().task("worker", gang))
            await scene.admit()
            await scene.until(lambda: scene.status().get("pending") == gang)
        before, began = status_writes(scene.server), clock.monotonic()
        for index in range(gang):
            scene.set_pod(f"job1-worker-{index}", "Running")
            await clock.advance(0.1)
        async with time_goes_on(clock, 0.01):
            await scene.until(lambda: scene.phase() == "Running")
        assert scene.status()["running"] == gang
        assert status_writes(scene.server) - before <= (clock.monotonic() - began) / WAIT + 2


def test_only_a_patch_of_nothing_but_counters_may_wait() -> None:
    stored = {"running": 1, "taskStatusCount": {"worker": {"phase": {"Running": 1}}}}
    counted = {"running": 2, "taskStatusCount": {"worker": {"phase": {"Running": 2}}}}
    assert pacing.may_wait(status.difference(stored, counted))
    assert not pacing.may_wait(status.difference(stored, {**counted, "retryCount": 1}))


@pytest.mark.parametrize(("pods", "want"), [(0, 0.05), (1, 0.05), (25, 0.05), (100, 0.2), (500, 1.0), (100_000, 1.0)])
def test_the_more_pods_the_later_they_are_counted(pods: int, want: float) -> None:
    assert pacing.counting_delay(pods) == pytest.approx(want)
