"""Previews and simulations agree with what a live scheduler then does, in random clusters."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from random import Random

import pytest
import pytest_asyncio

from stromboli.api import core, kinds
from stromboli.cli.commanding.api import Api
from stromboli.cli.commanding.kubeconfig import find
from stromboli.cli.rehearsing import members
from stromboli.cli.rehearsing.previewing import Verdict, preview
from stromboli.cli.rehearsing.simulating import simulate
from stromboli.cli.rehearsing.snapshots import Snapshot, gather
from stromboli.scheduler.core.policy import DEFAULT_POLICY
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.cli.situations import vcjob
from tests.scheduler.shell.stage import Stage

SEEDS = range(int(os.environ.get("AGREEMENT_CLUSTERS", "12")))
LOOKS = 4
"""Cycles after which a gang that has not started is taken to wait."""


@pytest_asyncio.fixture
async def stage(server: FakeApiServer) -> AsyncIterator[Stage]:
    async with await server.client() as client:
        made = Stage(server, client)
        yield made
        await made.kill()


def furnish(stage: Stage, random: Random) -> None:
    """Nodes of several sizes, two queues, and gangs that run or wait."""
    for number in range(random.randrange(2, 7)):
        stage.put(node(f"n{number}").offer(cpu=random.choice([2, 4, 8]), memory="32Gi", pods=20))
    stage.put(queue("root"), queue("default"), queue("other").weight(random.randrange(1, 4)))
    for number in range(random.randrange(4)):
        size, name = random.randrange(1, 4), f"old{number}"
        group = pod_group(name).queue(random.choice(["default", "other"])).members(random.randrange(1, size + 1))
        stage.put(group.reserve(cpu=size).born(1000 + number).phase("Inqueue"))
        stage.put(*(pod(f"{name}-{at}").group(name).request(cpu=1).born(1000 + number) for at in range(size)))


async def look(server: FakeApiServer) -> Snapshot:
    with Api(find("", server.url, {})) as api:
        return await asyncio.to_thread(gather, api)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_simulation_starts_what_the_scheduler_starts(stage: Stage, server: FakeApiServer, seed: int) -> None:
    furnish(stage, Random(seed))
    found = simulate(await look(server), DEFAULT_POLICY, cycles=LOOKS)
    await stage.start()
    await stage.until(lambda: stage.scheduler is not None and stage.scheduler.cycles >= LOOKS, "cycles")
    want = {start.pod.partition("/")[2] for start in found.started}
    await stage.until(lambda: len(stage.binds()) >= len(want), f"binds of seed {seed}, simulated {sorted(want)}")
    assert set(stage.binds()) == want


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_preview_says_what_the_scheduler_does(stage: Stage, server: FakeApiServer, seed: int) -> None:
    random = Random(1000 + seed)
    furnish(stage, random)
    replicas = random.randrange(1, 8)
    job = vcjob(
        replicas=replicas,
        minimum=random.randrange(1, replicas + 1),
        requests={"cpu": random.choice(["1", "2", "3"])},
        queue=random.choice(["default", "other"]),
    )
    found = preview(await look(server), DEFAULT_POLICY, job)
    group = members.pod_group(job, [], core.timestamp("2026-01-02T00:00:00Z"))
    server.put(kinds.POD_GROUPS, core.to_builtins(group, kinds.POD_GROUPS))
    await stage.start()
    await stage.until(lambda: stage.scheduler is not None and stage.scheduler.cycles >= LOOKS, "cycles")
    if stage.phase(group.name) == "Inqueue":  # the job's controller makes the pods when the group is admitted
        for each in members.pods(job, []):
            server.put(kinds.PODS, core.to_builtins(each, kinds.PODS))
        await stage.cycles(LOOKS)
    if found.verdict is Verdict.FITS_NOW:
        want = sum(found.placements.values())
        await stage.until(lambda: stage.bound("train-") >= want, f"{want} binds of seed {seed}: {found.sentence}")
        assert stage.bound("train-") == want
    else:
        assert found.verdict in (Verdict.WAITS, Verdict.NEVER_FITS)
        assert stage.bound("train-") == 0
