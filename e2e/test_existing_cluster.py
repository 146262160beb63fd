"""``make e2e`` on a cluster that is there already: a part of this very suite runs in it, and it is left as it was."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from e2e.realcluster import binaries
from e2e.realcluster.cluster import NEEDED, RealCluster
from stromboli.api.kinds import (
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
)
from stromboli.kube.client import Client
from stromboli.localcluster.options import ClusterSettings
from stromboli.localcluster.server import LocalCluster

ROOT = Path(__file__).parents[1]
TESTS = ["e2e/test_jobs.py", "e2e/test_queues.py", "-q", "-k", "aborts or deleting_a_job or capability"]
SECONDS = 400.0
PATIENTLY = pytest.mark.timeout(600)
KINDS = (CUSTOM_RESOURCE_DEFINITIONS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, CLUSTER_ROLES)
pytestmark = pytest.mark.skipif(
    binaries.find("helm") is None, reason="helm is not built: python -m e2e.realcluster --build"
)


@pytest_asyncio.fixture(loop_scope="session", params=["embedded", "real"])
async def given(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Path]:
    """Kubeconfig of a cluster of somebody else's."""
    found = {name: path for name in NEEDED if (path := binaries.find(name))}
    if request.param == "real" and len(found) < len(NEEDED):
        pytest.skip("the real control plane is not built: python -m e2e.realcluster --build")
    async with AsyncExitStack() as stack:
        if request.param == "embedded":
            settings = ClusterSettings(data_dir=tmp_path / "cluster", crds="none")
            embedded = await stack.enter_async_context(LocalCluster(settings, nodes=5))
            yield Path(embedded.kubeconfig)
        else:
            yield (await stack.enter_async_context(RealCluster(tmp_path / "cluster", found))).kubeconfig


@pytest_asyncio.fixture(loop_scope="session")
async def administrator(given: Path) -> AsyncIterator[Client]:
    async with await Client.connect(kubeconfig=str(given), qps=0) as client:
        yield client


async def make_e2e(kubeconfig: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and output of ``make e2e`` with that kubeconfig."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("E2E_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "e2e.realcluster", *arguments, cwd=ROOT,
        env={**inherited, "E2E_KUBECONFIG": str(kubeconfig)}, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, out.decode()


async def names(client: Client) -> set[str]:
    """What an installation makes for the whole cluster."""
    return {item["metadata"]["name"] for kind in KINDS for item in await client.list(kind)}


@PATIENTLY
async def test_a_part_of_the_suite_runs_and_the_cluster_is_left_as_it_was(given: Path, administrator: Client) -> None:
    before = await names(administrator)
    code, output = await make_e2e(given, *TESTS)
    assert code == 0, output
    assert " passed" in output
    assert await names(administrator) == before


@PATIENTLY
async def test_a_cluster_where_the_system_runs_is_refused_untouched(given: Path, administrator: Client) -> None:
    labels = {"app": "volcano-scheduler"}
    container = {"name": "scheduler", "image": "busybox"}
    await administrator.create(
        DEPLOYMENTS,
        {
            "metadata": {"name": "installed", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        },
    )
    before = await names(administrator)
    code, output = await make_e2e(given)
    assert code == 1
    assert "Deployment default/installed" in output
    assert await names(administrator) == before
