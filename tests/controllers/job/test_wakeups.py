"""Nothing that happens to a job is slept through: not what comes in the middle of a pass, nor what no event tells."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.job.controller import JobController
from stromboli.controllers.job.doubts import Doubts
from stromboli.controllers.job.ledger import LONGEST_LAG, Created, Ledger
from stromboli.kube import json
from stromboli.kube.controlling import Outcome
from stromboli.kube.json import JsonObject
from stromboli.kube.queues import WorkQueue
from stromboli.kube.stores import Key
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock
from stromboli.testing.faults import Hold
from tests.controllers.building import UID, job, member
from tests.controllers.job.beginning import begin
from tests.controllers.job.test_quiet import time_goes_on
from tests.controllers.stage import Stage, stage

KEY = ("default", "job1")


# -- in the middle of a pass -------------------------------------------------------------------------------------------


async def admitted(scene: Stage) -> None:
    await scene.admit()


async def scaled_up(scene: Stage) -> None:
    wire = scene.job()
    wire["spec"]["tasks"][0]["replicas"] = 3
    scene.server.put(kinds.JOBS, wire)
    await scene.admit()


async def queue_made_anew(scene: Stage) -> None:
    queue = scene.server.get(kinds.QUEUES, "default")
    scene.server.remove(kinds.QUEUES, "default")
    scene.server.put(kinds.QUEUES, {"metadata": {"name": "default"}, "spec": queue["spec"]})
    await scene.admit()


@pytest.mark.parametrize(
    ("happens", "want"),
    {"admission": (admitted, 2), "a change of scale": (scaled_up, 3), "a new queue": (queue_made_anew, 2)}.values(),
    ids=["admission", "a change of scale", "a new queue"],
)
async def test_what_happens_while_a_pass_writes_is_seen_by_the_next(
    happens: Callable[[Stage], Awaitable[None]], want: int
) -> None:
    async with stage() as scene:
        held = scene.server.faults.hold(verb="patch", kind=kinds.JOBS, skip=1)  # the group is there by then
        scene.submit(job().task("worker", 2).spec(plugins={"svc": []}))
        await scene.until(lambda: held.hits)
        await happens(scene)
        assert not scene.pods()
        held.release()
        await scene.until(lambda: len(scene.pods()) == want)


# -- what no event tells -----------------------------------------------------------------------------------------------


async def test_a_pod_that_came_and_went_unseen_is_made_again_when_the_belief_in_it_ends() -> None:
    clock = FakeClock()
    async with FakeApiServer(bookmark_interval=60.0) as server, await server.client() as client:
        scene = Stage(server, client, clock)
        server.faults.lose_event(kind=kinds.PODS)
        try:
            await begin(scene)
            async with time_goes_on(clock):
                scene.submit(job().task("worker", 1))
                await scene.admit()
                await scene.until(lambda: scene.pods())
                first = scene.uids()
                scene.delete_pod("job1-worker-0")
                await scene.until(lambda: scene.pods() and scene.uids() != first, "another pod")
        finally:
            await scene.stop()


async def watched_late(scene: Stage) -> Hold:
    """A controller whose watch of PodGroups tells nothing until the hold is released."""
    await scene.running(job("other").task("worker", 1), 1)
    await scene.stop()
    held = scene.server.faults.hold(verb="watch", kind=kinds.POD_GROUPS)
    await scene.start()
    return held


async def resized(scene: Stage, replicas: int) -> None:
    """Let the job be a gang of so many, and wait until a pass has seen it."""
    wire = scene.job()
    wire["spec"]["tasks"][0]["replicas"] = wire["spec"]["minAvailable"] = replicas
    scene.server.put(kinds.JOBS, wire)
    await scene.until(lambda: scene.status().get("minAvailable") == replicas)


async def test_a_group_that_no_watch_has_shown_yet_is_not_made_twice() -> None:
    async with stage() as scene:
        held = await watched_late(scene)
        before = scene.server.count("create", kinds.POD_GROUPS)
        scene.submit(job().task("worker", 1))
        await scene.until(lambda: scene.server.count("create", kinds.POD_GROUPS) > before)
        for replicas in (4, 5, 6):
            await resized(scene, replicas)
        assert scene.server.count("create", kinds.POD_GROUPS) == before + 1
        held.release()
        await scene.admit()
        await scene.until(lambda: len(scene.pods()) == 6)


async def test_a_group_that_shows_only_after_its_job_was_stopped_is_taken_away() -> None:
    async with stage() as scene:
        held = await watched_late(scene)
        scene.submit(job().task("worker", 1))
        await scene.until(lambda: scene.group())
        scene.command("AbortJob")
        await scene.until(lambda: scene.phase() == "Aborted")
        held.release()
        await scene.until(lambda: len(scene.names_of(kinds.POD_GROUPS)) == 1, "only the group of the other job")


async def test_a_group_that_came_and_went_unseen_is_made_again_when_the_belief_in_it_ends() -> None:
    clock = FakeClock()
    async with FakeApiServer(bookmark_interval=60.0) as server, await server.client() as client:
        scene = Stage(server, client, clock)
        server.faults.lose_event(kind=kinds.POD_GROUPS)
        try:
            await begin(scene)
            async with time_goes_on(clock):
                scene.submit(job().task("worker", 1))
                await scene.until(lambda: scene.group())
                first = scene.group()["metadata"]
                server.remove(kinds.POD_GROUPS, first["name"], "default")
                await scene.until(lambda: scene.group()["metadata"]["uid"] != first["uid"], "another group")
        finally:
            await scene.stop()


async def test_a_group_that_shows_as_its_job_wanted_it_before_is_brought_up_to_date() -> None:
    async with stage() as scene:
        held = await watched_late(scene)
        scene.submit(job().task("worker", 4))
        await scene.until(lambda: scene.group())
        await resized(scene, 2)
        held.release()
        await scene.until(lambda: scene.group()["spec"]["minMember"] == 2, "the group to follow its job")


def told_before_the_answer(scene: Stage, informers: SharedInformers) -> None:
    """The watch shows a PodGroup before whoever created it hears that it is there."""
    create, groups = scene.client.create, informers.pod_groups.store

    async def created(kind: Kind, obj: JsonObject, *args: Any, **options: Any) -> JsonObject:
        made = await create(kind, obj, *args, **options)
        if kind == kinds.POD_GROUPS:
            await scene.until(lambda: groups.get(json.key_of(made)), "the watch to show the group")
        return made

    scene.client.create = created  # type: ignore[method-assign]


def told_never(scene: Stage, informers: SharedInformers) -> None:
    """The watch loses the PodGroup."""
    scene.server.faults.lose_event(kind=kinds.POD_GROUPS)


@pytest.mark.parametrize("stopped", [False, True], ids=["goes on", "is stopped"])
@pytest.mark.parametrize("told", [told_before_the_answer, told_never])
async def test_the_end_of_the_belief_in_a_group_is_looked_at_once(
    told: Callable[[Stage, SharedInformers], None], *, stopped: bool
) -> None:
    clock, passes = FakeClock(), Passes()
    async with FakeApiServer(bookmark_interval=60.0) as server, await server.client() as client:
        scene = Stage(server, client, clock)

        def make(informers: SharedInformers) -> JobController:
            told(scene, informers)
            return JobController(client, informers, scene.events, scene.numbers, clock=clock, observer=passes)

        try:
            await scene.run(make)
            scene.submit(job().task("worker", 1))
            await scene.until(lambda: scene.group())
            async with time_goes_on(clock, step=1.0):
                if stopped:
                    scene.command("AbortJob")
                    await scene.until(lambda: scene.phase() == "Aborted")
                begun, before = clock.monotonic(), len(passes.outcomes)
                await scene.until(lambda: clock.monotonic() > begun + 2.0 * LONGEST_LAG)
            assert len(passes.outcomes) - before <= 6
        finally:
            await scene.stop()


def doubts(clock: FakeClock, ledger: Ledger) -> tuple[Doubts, WorkQueue[Key]]:
    queue: WorkQueue[Key] = WorkQueue(clock=clock)
    return Doubts(ledger, queue, clock), queue


async def test_pods_that_show_in_time_cost_no_pass() -> None:
    clock, ledger = FakeClock(), Ledger()
    doubt, queue = doubts(clock, ledger)
    memory = ledger.of(UID)
    memory.created["job1-worker-0"] = Created(member("worker", 0), clock.monotonic() + LONGEST_LAG)
    doubt.begin(KEY, UID)
    doubt.begin(KEY, UID)
    assert clock.sleepers == 1
    memory.created.clear()
    await clock.advance(10 * LONGEST_LAG)
    assert (queue.unfinished, clock.sleepers) == (0, 0)


async def test_pods_that_were_made_later_are_doubted_later() -> None:
    clock, ledger = FakeClock(), Ledger()
    doubt, queue = doubts(clock, ledger)
    memory = ledger.of(UID)
    memory.created["job1-worker-0"] = Created(member("worker", 0), clock.monotonic() + LONGEST_LAG)
    doubt.begin(KEY, UID)
    await clock.advance(LONGEST_LAG / 2)
    memory.created = {"job1-worker-1": Created(member("worker", 1), clock.monotonic() + LONGEST_LAG)}
    await clock.advance(LONGEST_LAG / 2)
    assert not queue.unfinished
    await clock.advance(LONGEST_LAG / 2)
    assert await queue.get() == KEY


async def test_a_job_that_is_gone_is_doubted_no_more() -> None:
    clock, ledger = FakeClock(), Ledger()
    doubt, queue = doubts(clock, ledger)
    ledger.of(UID).created["job1-worker-0"] = Created(member("worker", 0), clock.monotonic() + LONGEST_LAG)
    doubt.begin(KEY, UID)
    ledger.forget(UID)
    await clock.advance(LONGEST_LAG)
    assert (queue.unfinished, len(ledger)) == (0, 0)


# -- waits that nobody has to wait out ---------------------------------------------------------------------------------


async def test_the_next_job_of_a_name_does_not_wait_for_what_an_earlier_one_failed_at() -> None:
    clock = FakeClock()
    async with FakeApiServer(bookmark_interval=60.0) as server, await server.client() as client:
        scene = Stage(server, client, clock)
        try:
            queue = (await begin(scene))._controller.queue
            async with time_goes_on(clock):
                scene.submit(job().task("worker", 1).spec(queue="nowhere"))
                await scene.until(lambda: queue.failures(KEY) > 3)
            server.remove(kinds.JOBS, "job1", "default")
            await scene.until(lambda: not queue.failures(KEY))
        finally:
            await scene.stop()


async def test_a_corrected_job_does_not_wait_for_what_it_failed_at_before() -> None:
    async with stage(start=False) as scene:
        controller = await begin(scene)
        queue = controller._controller.queue
        scene.submit(job().task("worker", 1).spec(queue="nowhere"))
        await scene.until(lambda: queue.failures(KEY) > 5)
        wire = scene.job()
        wire["spec"]["queue"] = "nowhere either"
        most = queue.failures(KEY)
        scene.server.put(kinds.JOBS, wire)
        await scene.until(lambda: queue.failures(KEY) < most)


async def test_a_group_that_goes_at_last_lets_the_next_one_in_at_once() -> None:
    clock = FakeClock()
    async with FakeApiServer(bookmark_interval=60.0) as server, await server.client() as client:
        scene = Stage(server, client, clock)
        try:
            await begin(scene)
            async with time_goes_on(clock):
                scene.submit(job().task("worker", 1).policy("PodFailed", "RestartJob"))
                await scene.admit()
                await scene.run_pods(1)
                await scene.until(lambda: scene.phase() == "Running")
                await hold_group(scene, "example.com/slow")
                scene.set_pod("job1-worker-0", "Failed", exit_code=1)
                await scene.until(lambda: refused_creations(scene) > 3)
            first = scene.group()["metadata"]["uid"]
            before = clock.monotonic()
            await hold_group(scene)
            await scene.until(lambda: scene.group()["metadata"]["uid"] != first, "another group")
            assert clock.monotonic() == before, "no back-off was waited for"
        finally:
            await scene.stop()


async def hold_group(scene: Stage, *finalizers: str) -> None:
    """Let the group's finalizers be these."""
    name, patch = scene.group()["metadata"]["name"], {"metadata": {"finalizers": list(finalizers)}}
    await scene.client.patch(kinds.POD_GROUPS, name, patch, "default")


def refused_creations(scene: Stage) -> int:
    """How often a group was to be created, beyond the first."""
    return len(scene.server.called("create", kinds.POD_GROUPS)) - 1


async def test_a_command_waits_until_the_watch_shows_its_job() -> None:
    async with stage() as scene:
        await scene.running(job("other").task("worker", 1), 1)
        server = scene.server
        await scene.stop()
        held = server.faults.hold(verb="watch", kind=kinds.JOBS)
        await scene.start()
        scene.submit(job().task("worker", 1))
        scene.command("TerminateJob")
        await scene.until(lambda: server.count("get", kinds.JOBS, "job1") > 2)
        assert scene.names_of(kinds.COMMANDS) == ["job1-terminatejob"]
        held.release()
        await scene.until(lambda: scene.phase() == "Terminated")
        assert not scene.names_of(kinds.COMMANDS)


async def test_a_command_is_not_lost_when_the_server_fails_to_tell_of_its_job() -> None:
    async with stage() as scene:
        await scene.running(job().task("worker", 1), 1)
        failed = scene.server.faults.fail(403, verb="get", kind=kinds.JOBS)
        scene.command("TerminateJob")
        await scene.until(lambda: scene.phase() == "Terminated")
        assert failed.hits == 1


# -- and nobody is woken in vain ---------------------------------------------------------------------------------------


class Passes:
    """Counts how often a job was taken up."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def reconciled(self, controller: str, outcome: Outcome, seconds: float, depth: int) -> None:
        self.outcomes.append(outcome)


async def test_a_job_of_one_pod_is_taken_up_a_few_times_in_its_life() -> None:
    """When it comes, when it is let in, and when its pod has changed; not for what the controller has done itself."""
    passes = Passes()
    async with stage(start=False) as scene:
        await scene.start(observer=passes, counters_wait=30.0)
        scene.submit(job().task("worker", 1))
        await scene.admit()
        await scene.until(lambda: scene.pods())
        scene.set_pod("job1-worker-0", "Running")
        await scene.until(lambda: scene.phase() == "Running")
        scene.set_pod("job1-worker-0", "Succeeded", exit_code=0)
        await scene.until(lambda: scene.phase() == "Completed")
        await scene.until(lambda: not scene.names_of(kinds.POD_GROUPS))
    assert len(passes.outcomes) <= 5
    assert Outcome.ERROR not in passes.outcomes


async def test_words_of_the_scheduler_that_change_nothing_for_a_job_wake_nobody() -> None:
    passes = Passes()
    async with stage(start=False) as scene:
        await scene.start(observer=passes)
        await scene.running(job().task("worker", 1), 1)
        before = len(passes.outcomes)
        group, told = scene.group(), {"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready"}
        condition = {**told, "lastTransitionTime": "2026-06-24T09:00:00Z", "transitionID": "1", "message": ""}
        status = {"phase": "Running", "running": 1, "conditions": [condition]}
        scene.server.put(kinds.POD_GROUPS, {**group, "status": status})
        await scene.running(job("other").task("worker", 1), 1)  # by then the change was seen
        others = len(passes.outcomes) - before
        scene.server.put(kinds.POD_GROUPS, {**scene.group(), "status": {**status, "phase": "Unknown"}})
        await scene.until(lambda: len(passes.outcomes) > before + others)
        assert others <= 5
