"""The API server going away for a while in mid-job costs time, and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from e2e.cluster import COMPLETE, Cluster, Json, eventually, phase, vcjob
from stromboli.api.kinds import JOBS, NAMESPACES
from stromboli.cli.stack import CLUSTER, Stack
from stromboli.kube.client import Client
from stromboli.kube.errors import KubeError

pytestmark = pytest.mark.own_processes

Restart = Callable[[], Awaitable[None]]
BACK_SECONDS = 90.0


@pytest.fixture
def restart(stack: Stack, client: Client) -> Restart:
    """Ends the API server and waits until there is one again: killed where its state is in etcd, else stopped."""
    pid_file = os.environ.get("E2E_API_SERVER_PID")

    async def embedded() -> None:
        await stack.stop(CLUSTER)
        await stack.start_cluster()

    async def real() -> None:
        path = Path(str(pid_file))
        before = _pid(path)
        os.kill(before, signal.SIGKILL)
        await eventually(
            lambda: asyncio.to_thread(_pid, path),
            lambda seen: seen != before,
            within=BACK_SECONDS,
            what="a new API server",
        )
        await eventually(lambda: _answers(client), bool, within=BACK_SECONDS, what="an answering API server")

    if stack.options.with_cluster:
        return embedded
    if pid_file is None:
        pytest.skip("the API server of an existing cluster is not ours to end")
    return real


def _pid(path: Path) -> int:
    return int(path.read_text() or 0)


async def _answers(client: Client) -> bool:
    try:
        async with asyncio.timeout(2):
            await client.list(NAMESPACES)
    except (KubeError, TimeoutError):
        return False
    return True


async def test_jobs_go_on_when_the_api_server_has_been_away(cluster: Cluster, stack: Stack, restart: Restart) -> None:
    await cluster.create(JOBS, vcjob("during", replicas=3, command="sleep 4", task_policies=[COMPLETE]))
    await cluster.phase_is("during", "Running")
    await restart()

    async def job() -> Json:
        await stack.revive()
        return await cluster.job("during")

    await eventually(job, lambda seen: phase(seen) == "Completed", within=90, what="during completed")
    stack.check()
    await cluster.create(JOBS, vcjob("after", replicas=2, command="sleep 1", task_policies=[COMPLETE]))
    done = await cluster.phase_is("after", "Completed", within=60)
    assert done["status"]["succeeded"] == 2
