"""Opening pods that their queue has admitted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.scheduler.core.results import TaskRef
from stromboli.scheduler.gating import WAITING_PER_WORKER, GateRemover
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.waiting import eventually


def task(name: str, uid: str = "") -> TaskRef:
    return TaskRef("ns", name, uid or f"uid-{name}", "ns/j")


@asynccontextmanager
async def running(remover: GateRemover) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(remover.run())
        yield
        work.cancel()


@pytest.fixture
async def site() -> AsyncIterator[tuple[FakeApiServer, Client]]:
    async with FakeApiServer() as server, await server.client() as client:
        for name in ("a", "b"):
            server.put(kinds.PODS, {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"}, "spec": {}})
        yield server, client


async def test_gate_is_asked_to_be_removed_by_name(site: tuple[FakeApiServer, Client]) -> None:
    server, client = site
    remover = GateRemover(client)
    remover.submit([task("a")])
    async with running(remover):
        await eventually(lambda: server.get(kinds.PODS, "a", "ns")["spec"].get("schedulingGates"))
    removal = {"name": "scheduling.volcano.sh/queue-allocation-gate", "$patch": "delete"}
    assert server.get(kinds.PODS, "a", "ns")["spec"]["schedulingGates"] == [removal]


async def test_pod_that_fails_does_not_hold_up_the_next_and_is_left_to_the_next_cycle(
    site: tuple[FakeApiServer, Client],
) -> None:
    server, client = site
    refused = server.faults.fail(403, verb="patch", kind=kinds.PODS, name="a", times=None)
    remover = GateRemover(client, workers=1)
    remover.submit([task("a"), task("gone"), task("b")])
    async with running(remover):
        await eventually(lambda: server.get(kinds.PODS, "b", "ns")["spec"].get("schedulingGates"))
    assert refused.hits == 1


async def test_another_pod_of_the_same_name_keeps_its_gate(site: tuple[FakeApiServer, Client]) -> None:
    server, client = site
    remover = GateRemover(client)
    remover.submit([task("a", "an-older-uid")])
    async with running(remover):
        await eventually(lambda: server.count("patch", kinds.PODS, "a") == 1)
        remover.submit([task("b")])
        await eventually(lambda: server.get(kinds.PODS, "b", "ns")["spec"].get("schedulingGates"))
    assert "schedulingGates" not in server.get(kinds.PODS, "a", "ns")["spec"]


@pytest.mark.parametrize(("workers", "limit"), [(2, 2 * WAITING_PER_WORKER), (0, WAITING_PER_WORKER)])
async def test_queue_is_bounded(site: tuple[FakeApiServer, Client], workers: int, limit: int) -> None:
    remover = GateRemover(site[1], workers=workers)
    remover.submit(task(f"p{number}") for number in range(5000))
    assert remover.waiting == limit
