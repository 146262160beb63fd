"""Dumps, the log-level socket, stacks, and the explain endpoint."""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from stromboli.scheduler import dumping
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.results import JobReport
from stromboli.scheduler.debugging import LogLevelSocket, stack_routes
from stromboli.scheduler.explaining import Explanations
from stromboli.scheduler.feeding import Feed
from stromboli.testing.builders import hyper_node, node, pod, pod_group, queue
from stromboli.testing.waiting import eventually


def mirror() -> Mirror:
    filled = Mirror()
    filled.apply_node(node("n1").offer(cpu=4).build())
    filled.apply_queue(queue().build())
    filled.apply_pod_group(pod_group("j").members(1).build())
    filled.apply_pod(pod("p").group("j").request(cpu=1).on("n1").build())
    filled.apply_hyper_node(hyper_node("rack", 1, ("n1",)))
    return filled


def test_dump_has_its_documents_in_the_documented_order() -> None:
    nodes, tiers, names, members, hyper_nodes, jobs = map(json.loads, dumping.render(mirror()).splitlines())
    assert nodes["n1"]["idle"]["cpu"] == 3000
    assert nodes["n1"]["tasks"] == ["ns/p"]
    assert tiers["1"] == ["rack"]
    assert names == {}
    assert members["rack"] == ["n1"]
    assert hyper_nodes["rack"]["parent"] == "<cluster-top-hypernode>"
    assert jobs["ns/j"]["tasks"] == {"ns/p": {"status": "Running", "node": "n1"}}


async def test_signal_writes_the_dump_once_the_running_cycle_has_ended(tmp_path: Path) -> None:
    feed = Feed()
    sinks = {signal.SIGUSR1: dumping.to_directory(tmp_path, lambda: 1234.5)}
    with dumping.on_signals(mirror(), feed, sinks):
        async with feed.frozen():
            os.kill(os.getpid(), signal.SIGUSR1)
            await eventually(lambda: feed.depth == 1)
            assert not exists(tmp_path / "snapshot-1234.json")
        assert exists(tmp_path / "snapshot-1234.json")


def exists(path: Path) -> bool:
    return path.exists()


def test_dump_that_cannot_be_written_is_one_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dumping.to_directory(tmp_path / "nowhere", lambda: 1.0)(b"x")
    assert "could not be written" in caplog.text


@pytest.fixture
async def socket(tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    async with LogLevelSocket(0, tmp_path) as level:
        connector = aiohttp.UnixConnector(path=str(level.path))
        async with aiohttp.ClientSession(connector=connector, base_url="http://scheduler") as session:
            yield session
    logging.getLogger("stromboli").setLevel(logging.NOTSET)


async def get(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as answer:
        return answer.status, await answer.text()


async def test_level_is_raised_for_a_while_and_comes_back(socket: aiohttp.ClientSession) -> None:
    assert await get(socket, "/getlevel") == (200, "Current klog log level: 0")
    status, text = await get(socket, "/setlevel?level=5&duration=50ms")
    assert (status, text) == (200, "Change klog log level to 5 successfully and  for 50ms")
    assert await get(socket, "/getlevel") == (200, "Current klog log level: 5")
    assert logging.getLogger("stromboli").level == logging.DEBUG
    await eventually(lambda: logging.getLogger("stromboli").level == logging.INFO)
    assert await get(socket, "/getlevel") == (200, "Current klog log level: 0")


@pytest.mark.parametrize(
    "query", ["", "level=5", "level=0&duration=1s", "level=5&duration=0s", "level=x&duration=1s", "level=5&duration=x"]
)
async def test_unusable_request_gets_the_usage(socket: aiohttp.ClientSession, query: str) -> None:
    status, text = await get(socket, f"/setlevel?{query}")
    assert status == 400
    assert text.startswith("usage: /setlevel")


async def test_second_request_replaces_the_first(socket: aiohttp.ClientSession) -> None:
    await get(socket, "/setlevel?level=5&duration=20ms")
    await get(socket, "/setlevel?level=6&duration=1h")
    await get(socket, "/setlevel?level=7&duration=20ms")
    await eventually(lambda: logging.getLogger("stromboli").level == logging.INFO)


async def test_directory_that_cannot_be_used_costs_only_the_socket(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    occupied(tmp_path / "file")
    async with LogLevelSocket(0, tmp_path / "file" / "below"):
        assert "no log-level socket" in caplog.text


def occupied(path: Path) -> None:
    path.write_text("not a directory")


def report(job: str, message: str) -> JobReport:
    return JobReport(job, "Inqueue", 3, {"Pending": 3}, message=message, tasks={"p0": "0/1 nodes are unavailable"})


async def test_explain_answers_all_jobs_one_job_and_none() -> None:
    explanations = Explanations()
    explanations.record(1, [report("ns/a", "first"), report("ns/b", "b")], ["plugin x is not known"], {"ns/a", "ns/b"})
    explanations.record(2, [report("ns/a", "second")], [], {"ns/a"})
    application = web.Application()
    application.add_routes([*explanations.routes(), *stack_routes()])
    async with TestClient(TestServer(application)) as client:
        answer = await (await client.get("/debug/explain")).json()
        assert [job["job_id"] for job in answer["jobs"]] == ["ns/a"]
        one = await (await client.get("/debug/explain", params={"job": "ns/a"})).json()
        assert (one["cycle"], one["message"], one["tasks"]["p0"]) == (2, "second", "0/1 nodes are unavailable")
        gone = await client.get("/debug/explain", params={"job": "ns/b"})
        assert gone.status == 404
        assert "ns/b" in (await gone.json())["error"]
        stacks = await client.get("/debug/pprof/goroutine")
        assert "Thread" in await stacks.text()
