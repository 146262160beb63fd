"""Killing any of the three processes in mid-job and starting it again loses nothing and doubles nothing."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import orjson
import pytest

from e2e.cluster import COMPLETE, Cluster, eventually, vcjob
from stromboli.api.kinds import JOBS, NAMESPACES, PODS
from stromboli.cli.stack import CONTROLLERS, PROCESSES, SCHEDULER, WEBHOOKS, Stack

pytestmark = pytest.mark.own_processes


@contextlib.asynccontextmanager
async def every_pod_added(cluster: Cluster) -> AsyncIterator[list[str]]:
    """The names of all pods added in the namespace while the block runs, in order, doubles included."""
    names: list[str] = []

    async def note() -> None:
        version = (await cluster.client.get(NAMESPACES, cluster.namespace))["metadata"]["resourceVersion"]
        while True:
            async for event in cluster.client.watch(PODS, cluster.namespace, resource_version=version):
                pod = orjson.loads(event.object)
                version = pod["metadata"]["resourceVersion"]
                if event.type == "ADDED":
                    names.append(pod["metadata"]["name"])

    task = asyncio.create_task(note())
    try:
        yield names
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


EACH_AND_ALL = {name: (name,) for name in (CONTROLLERS, SCHEDULER, WEBHOOKS)} | {"all three": PROCESSES}


@pytest.mark.parametrize("names", EACH_AND_ALL)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_processes_killed_at_a_random_moment_lose_and_double_nothing(
    cluster: Cluster, stack: Stack, names: str, seed: int
) -> None:
    moment = random.Random(f"{names}{seed}").uniform(0.0, 2.0)
    jobs = [f"job-{index}" for index in range(4)]
    want = sorted(f"{job}-worker-{index}" for job in jobs for index in range(4))
    async with every_pod_added(cluster) as added:
        for job in jobs:
            await cluster.create(JOBS, vcjob(job, replicas=4, command="sleep 2", task_policies=[COMPLETE]))
        await asyncio.sleep(moment)  # the random moment of the crash
        for name in EACH_AND_ALL[names]:
            stack.kill(name)
        for name in EACH_AND_ALL[names]:
            await stack.stop(name)
            await stack.start(name)
        for job in jobs:
            done = await cluster.phase_is(job, "Completed")
            assert done["status"]["succeeded"] == 4
            assert done["status"].get("retryCount", 0) == 0
        pods = await cluster.pods()
        assert sorted(pod["metadata"]["name"] for pod in pods) == want
        assert all(pod["status"]["phase"] == "Succeeded" for pod in pods)
        await eventually(lambda: asyncio.sleep(0, added), lambda seen: len(seen) >= len(want), what="all pods noted")
    assert sorted(added) == want
