"""A job's life with something going wrong at every single request: the end must be that of the undisturbed run."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from stromboli.api import kinds
from stromboli.kube.json import JsonObject
from stromboli.testing.faults import Call, CutWatch, Disconnect, Duplicate, ExpireWatch, Failure, Fault, Hold, Reorder
from tests.controllers.autopilot import autopilot
from tests.controllers.building import JobBuilder, job
from tests.controllers.stage import Stage, stage

MOST_WRITES = 60
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
WRITES = ("create", "update", "patch", "delete")
KEYS = ["--ssh-private-key=private", "--ssh-public-key=public"]  # drawing some takes longer than all the rest
LEFTOVERS = (kinds.POD_GROUPS, kinds.CONFIG_MAPS, kinds.SECRETS, kinds.SERVICES, kinds.NETWORK_POLICIES)


def restarting() -> JobBuilder:
    """Two workers and plugin objects; the first run of worker 0 fails and restarts the whole job."""
    return job().task("worker", 2).policy("PodFailed", "RestartJob").spec(plugins={"svc": [], "env": []})


def replacing() -> JobBuilder:
    """Three workers; the first run of worker 0 fails and its whole task is restarted."""
    return job().task("master", 1).task("worker", 2).policy("PodFailed", "RestartTask", task="worker")


def furnished() -> JobBuilder:
    """Everything that a job can own, in partitions of which the failing one is restarted."""
    policy = {"totalPartitions": 2, "partitionSize": 1}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return (
        job()
        .task("worker", 2, partitionPolicy=policy)
        .policy("PodFailed", "RestartPartition")
        .spec(plugins={"svc": [], "ssh": KEYS}, volumes=[{"mountPath": "/data", "volumeClaim": claim}])
    )


class FirstRunFails:
    """Fails worker 0 on its first run, lets everything else succeed."""

    def __init__(self, scene: Stage) -> None:
        self._scene = scene
        self._failed = ""

    def __call__(self, name: str, version: int) -> str:
        uid = self._scene.uids().get(name, "")
        if name == "job1-worker-0" and self._failed in ("", uid):
            self._failed = uid
            return "Failed"
        return "Succeeded" if self._failed else "Running"


def picture(scene: Stage) -> JsonObject:
    """The end of a life, without names and times that differ from run to run."""
    status = scene.status()
    return {
        "phase": scene.phase(),
        "retries": status.get("retryCount", 0),
        "version": status.get("version", 0),
        "succeeded": status.get("succeeded", 0),
        "running": status.get("running", 0),
        "pods": scene.pod_phases(),
        "left": [name for kind in LEFTOVERS for name in scene.names_of(kind)],
        "controlled": {unnamed(key): unnamed(name) for key, name in status.get("controlledResources", {}).items()},
        "claims": len(scene.names_of(kinds.PERSISTENT_VOLUME_CLAIMS)),
    }


def unnamed(text: str) -> str:
    """The text without what is drawn for each job."""
    return re.sub(r"(?<=-pvc-)[0-9a-z]{12}", "drawn", text)


async def live(scene: Stage, builder: JobBuilder) -> JsonObject:
    """Run a job to its end and describe it."""
    async with autopilot(scene, FirstRunFails(scene)):
        scene.submit(builder)
        await scene.until(lambda: scene.phase() == "Completed")
        await scene.until(lambda: not any(scene.names_of(kind) for kind in LEFTOVERS), "leftovers to go")
        await scene.until(lambda: scene.status().get("succeeded") == len(scene.pods()), "all counted")
        await scene.until(lambda: "plugin-svc" not in scene.status().get("controlledResources", {}), "markers to go")
    return picture(scene)


class WriteRefused(Failure):
    """Refuses one write."""

    def applies(self, call: Call) -> bool:
        return call.verb in WRITES and super().applies(call)


class WriteUnanswered(Disconnect):
    """Cuts the connection of one write."""

    def applies(self, call: Call) -> bool:
        return call.verb in WRITES and super().applies(call)


class WriteHeld(Hold):
    """Lets one write wait until the controller that sent it is gone."""

    def applies(self, call: Call) -> bool:
        return call.verb in WRITES and super().applies(call)


FAULTS: dict[str, Callable[[int], Fault]] = {
    "refused for a moment": lambda n: WriteRefused(skip=n - 1, code=500),
    "in conflict": lambda n: WriteRefused(skip=n - 1, code=409, reason="Conflict"),
    "carried out without an answer": lambda n: WriteUnanswered(skip=n - 1, executed=True),
    "lost without an answer": lambda n: WriteUnanswered(skip=n - 1),
}
BUILDERS = {"whole job": restarting, "one task": replacing, "one partition of a furnished job": furnished}


async def undisturbed(build: Callable[[], JobBuilder]) -> JsonObject:
    async with stage() as scene:
        return await live(scene, build())


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
async def test_the_undisturbed_life(build: Callable[[], JobBuilder]) -> None:
    seen = await undisturbed(build)
    assert (seen["phase"], seen["retries"], seen["running"], seen["left"]) == ("Completed", 1, 0, [])
    assert set(seen["pods"].values()) == {"Succeeded"}


@pytest.mark.parametrize("make", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
async def test_a_fault_at_any_write_changes_nothing_in_the_end(
    build: Callable[[], JobBuilder], make: Callable[[int], Fault]
) -> None:
    want = await undisturbed(build)
    for n in range(1, MOST_WRITES):
        async with stage() as scene:
            fault = make(n)
            scene.server.faults.add(fault)
            assert await live(scene, build()) == want, f"with the fault at write {n}"
        if not fault.hits:
            return
    raise AssertionError(f"more than {MOST_WRITES} writes in so short a life")


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
async def test_a_controller_that_dies_at_any_write_is_replaced_without_harm(build: Callable[[], JobBuilder]) -> None:
    want = await undisturbed(build)
    for n in range(1, MOST_WRITES):
        async with stage() as scene:
            held = WriteHeld(skip=n - 1)
            scene.server.faults.add(held)
            async with asyncio.TaskGroup() as tasks:
                life = tasks.create_task(live(scene, build()))
                killer = tasks.create_task(replace_controller(scene, held))
                seen = await life
                killer.cancel()
            assert seen == want, f"after a death at write {n}"
        if not held.hits:
            return
    raise AssertionError(f"more than {MOST_WRITES} writes in so short a life")


async def replace_controller(scene: Stage, held: Hold) -> None:
    """Once a write is held, kill the controller that waits for it and start another."""
    await scene.until(lambda: held.hits)
    await scene.stop()
    held.release()
    await scene.start()


WATCH_FAULTS: dict[str, Callable[[Stage], None]] = {
    "events twice": lambda scene: add_to_watches(scene, Duplicate(verb="watch", times=None)),
    "events out of order": lambda scene: add_to_watches(scene, Reorder(verb="watch", times=None)),
    "watches that are cut": lambda scene: add_to_watches(scene, CutWatch(verb="watch", times=6, after=3)),
    "watches that expire": lambda scene: add_to_watches(scene, ExpireWatch(verb="watch", times=6, after=4)),
}


def add_to_watches(scene: Stage, fault: Fault) -> None:
    scene.server.faults.add(fault)


@pytest.mark.parametrize("arrange", WATCH_FAULTS.values(), ids=WATCH_FAULTS.keys())
@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
async def test_what_goes_wrong_on_a_watch_changes_nothing_in_the_end(
    build: Callable[[], JobBuilder], arrange: Callable[[Stage], None]
) -> None:
    want = await undisturbed(build)
    async with stage(start=False) as scene:
        arrange(scene)
        await scene.start()
        assert await live(scene, build()) == want
