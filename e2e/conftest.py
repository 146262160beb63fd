"""One control plane for the whole suite, one namespace for each test."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from e2e.cluster import Cluster, fresh_namespace
from e2e.policies import PolicyFile
from e2e.telling import story
from stromboli.api.kinds import NAMESPACES, PRIORITY_CLASSES, QUEUES
from stromboli.cli.stack import SCHEDULER, Stack, StackOptions
from stromboli.kube.client import Client
from stromboli.process.ports import free_port

CHART_POLICY = Path(__file__).parents[1] / "charts" / "stromboli" / "config" / "volcano-scheduler.conf"
OpenQueue = Callable[..., Awaitable[str]]
_numbers = itertools.count(1)
MARKERS = (
    "simulated_nodes: counts on five nodes of 8 cpu, whose containers run in name only and end as annotations say",
    "own_processes: kills, stops or reconfigures the three processes, which the suite itself must have started",
)
FAILED = pytest.StashKey[bool]()
"""Whether a test's own part failed."""
OF_PROCESSES = frozenset({"policy_file"})
"""Fixtures whose users need processes of their own."""


def pytest_configure(config: pytest.Config) -> None:
    """What a test counts on, so that it is not chosen where that is not so (``e2e.realcluster.borrowing``)."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here is an end-to-end test on one session-wide event loop, with time for a cluster to act."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(180))
            if OF_PROCESSES & set(getattr(item, "fixturenames", ())):
                item.add_marker(pytest.mark.own_processes)
            if "asyncio" in item.keywords or item.get_closest_marker("asyncio"):
                item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember which tests failed, for fixtures that then tell more."""
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


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
    scheduler_conf = directory / "scheduler.conf"
    scheduler_conf.write_text(CHART_POLICY.read_text())
    options = StackOptions(
        directory=directory,
        port=free_port(),
        state_file=directory / "state",
        scheduler_conf=scheduler_conf,
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


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def policy_file(stack: Stack) -> AsyncIterator[PolicyFile]:
    """The scheduler's policy file, for a module's tests to change; afterwards it is what it was."""
    if SCHEDULER not in stack.parts:
        pytest.skip("the policy of a scheduler that is there already is not ours to change")
    file = PolicyFile.of(stack)
    before = file.content
    yield file
    await file.put(before)


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(client: Client, stack: Stack, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """The cluster with a namespace of the test's own, removed afterwards."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_")).strip("-")
    name = f"{words[:40].strip('-')}-{os.getpid() % 10000}-{next(_numbers)}"
    # What ended in a test fails that test, at its end, and no other.
    await stack.revive()
    await fresh_namespace(client, name)
    running = Cluster(client, name)
    yield running
    if request.node.stash.get(FAILED, False):
        print(await story(running))  # pytest shows it with the failure
    await running.clear()
    await client.delete(NAMESPACES, name)
    stack.check()


@pytest_asyncio.fixture(loop_scope="session")
async def open_queue(cluster: Cluster) -> AsyncIterator[OpenQueue]:
    """Makes queues of the test's own, from a word and a spec; they go when their jobs have gone."""
    made: list[str] = []

    async def make(word: str, **spec: Any) -> str:
        made.append(await cluster.open_queue(f"{cluster.namespace[-50:].strip('-')}-{word}", **spec))
        return made[-1]

    yield make
    await cluster.clear()
    for name in reversed(made):
        await cluster.delete(QUEUES, name)
        await cluster.gone(QUEUES, name)


@pytest_asyncio.fixture(loop_scope="session")
async def priorities(cluster: Cluster) -> AsyncIterator[dict[str, str]]:
    """Names of two PriorityClasses of the test's own, ``low`` and ``high``."""
    names = {word: f"{cluster.namespace}-{word}" for word in ("low", "high")}
    for (word, name), value in zip(names.items(), (10, 1000), strict=True):
        wire = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": PRIORITY_CLASSES.kind, "metadata": {"name": name}}
        await cluster.create(PRIORITY_CLASSES, {**wire, "value": value, "description": word})
    yield names
    for name in names.values():
        await cluster.delete(PRIORITY_CLASSES, name)


@pytest.fixture
def kubeconfig(stack: Stack) -> Iterator[Path]:
    """Path of the administrator's kubeconfig."""
    yield stack.kubeconfig
