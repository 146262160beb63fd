"""One control plane for the whole suite, one namespace for each test."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from e2e.cluster import Cluster, fresh_namespace
from stromboli.api.kinds import NAMESPACES
from stromboli.cli.stack import Stack, StackOptions, free_port
from stromboli.kube.client import Client

_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here is an end-to-end test on one session-wide event loop, with time for a cluster to act."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(180))
            if "asyncio" in item.keywords or item.get_closest_marker("asyncio"):
                item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def existing_kubeconfig() -> Path | None:
    """Kubeconfig of a cluster that is there already, else None: the embedded one is started."""
    path = os.environ.get("E2E_KUBECONFIG")
    return Path(path) if path else None


@pytest.fixture(scope="session")
def process_arguments() -> dict[str, list[str]]:
    """Arguments of each process, by process, where somebody else has installed the system (``E2E_PROCESSES``)."""
    path = os.environ.get("E2E_PROCESSES")
    return dict(json.loads(Path(path).read_text())) if path else {}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stack(
    tmp_path_factory: pytest.TempPathFactory,
    existing_kubeconfig: Path | None,
    process_arguments: dict[str, list[str]],
) -> AsyncIterator[Stack]:
    """The running system. A fixed port and a state file let its API server be stopped and started again."""
    directory = tmp_path_factory.mktemp("stack")
    options = StackOptions(
        directory=directory,
        port=free_port(),
        state_file=directory / "state",
        nodes=5,
        node_capacity="cpu=8,memory=32Gi,pods=110",
        with_cluster=existing_kubeconfig is None,
        kubeconfig=existing_kubeconfig,
        process_arguments=process_arguments,
        with_processes=os.environ.get("E2E_RUNNING") != "1",
    )
    async with Stack(options) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def client(stack: Stack) -> AsyncIterator[Client]:
    """An administrator's client."""
    async with await Client.connect(kubeconfig=str(stack.kubeconfig), qps=0) as connected:
        yield connected


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(client: Client, stack: Stack, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """The cluster with a namespace of the test's own, removed afterwards."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_")).strip("-")
    name = f"{words[:40].strip('-')}-{os.getpid() % 10000}-{next(_numbers)}"
    await fresh_namespace(client, name)
    running = Cluster(client, name)
    yield running
    await running.clear()
    await client.delete(NAMESPACES, name)
    stack.check()


@pytest.fixture
def kubeconfig(stack: Stack) -> Iterator[Path]:
    """Path of the administrator's kubeconfig."""
    yield stack.kubeconfig
