"""Questions to pods, on a real network: the loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from socket import socket

import pytest
from aiohttp import web

from stromboli.api.core import Pod, from_builtins
from stromboli.controllers.jobflow.conditions import Question
from stromboli.controllers.jobflow.probing import Prober, ask


def pod(name: str, phase: str = "Running", task: str = "t", address: str = "127.0.0.1", **meta: object) -> Pod:
    head = {"name": name, "annotations": {"volcano.sh/task-spec": task}, **meta}
    return from_builtins(Pod, {"metadata": head, "status": {"phase": phase, "podIP": address}})


@asynccontextmanager
async def server() -> AsyncIterator[int]:
    """Answers 200 at /ready to who sends the header, 302 at /moved, 404 elsewhere; never at /slow."""

    async def handle(request: web.Request) -> web.Response:
        if request.path == "/slow":
            await asyncio.Event().wait()
        if request.path == "/moved":
            raise web.HTTPFound("http://127.0.0.1:1/")
        return web.Response(status=200 if request.path == "/ready" and request.headers.get("x") == "y" else 404)

    app = web.Application()
    app.router.add_get("/{any:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def closed_port() -> int:
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_http() -> None:
    async with server() as port:
        header = ("x", "y")
        assert await ask(Question("j", "t", port, "/ready", header), "127.0.0.1")
        assert await ask(Question("j", "t", port, "ready", header), "127.0.0.1"), "a path without its slash"
        assert not await ask(Question("j", "t", port, "/ready"), "127.0.0.1"), "without the header"
        assert not await ask(Question("j", "t", port, "/other", header), "127.0.0.1")
        assert await ask(Question("j", "t", port, "/moved"), "127.0.0.1"), "a redirection is an answer, not followed"


async def test_tcp() -> None:
    async with server() as port:
        assert await ask(Question("j", "t", port), "127.0.0.1")
    assert not await ask(Question("j", "t", closed_port()), "127.0.0.1")


@pytest.mark.parametrize("path", [None, "/"])
@pytest.mark.parametrize("port", [0, 70000])
async def test_a_port_that_is_none(port: int, path: str | None) -> None:
    assert not await ask(Question("j", "t", port, path), "127.0.0.1")


async def test_a_header_that_would_be_two_is_not_sent() -> None:
    async with server() as port:
        assert not await ask(Question("j", "t", port, "/ready", ("x", "y\r\nz: w")), "127.0.0.1")


@pytest.mark.parametrize("address", ["", "not an address", "::1"])
async def test_an_address_that_is_none_or_does_not_answer(address: str) -> None:
    assert not await ask(Question("j", "t", closed_port(), "/"), address)


async def test_no_answer_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stromboli.controllers.jobflow.probing.TIMEOUT", 0.05)
    async with server() as port:
        assert not await ask(Question("j", "t", port, "/slow"), "127.0.0.1")


async def answers(*pods: Pod, task: str = "t", yes: frozenset[str] = frozenset({"1.1.1.1"})) -> bool | None:
    async def asked(question: Question, address: str) -> bool:
        return address in yes

    question = Question("j", task, 80)
    return (await Prober(asked).answers([question, question], {"j": pods})).get(question)


async def test_every_pod_of_the_task_is_asked() -> None:
    good, bad = pod("a", address="1.1.1.1"), pod("b", address="2.2.2.2")
    assert await answers(good) is True
    assert await answers(good, bad) is False
    assert await answers(good, pod("b", address="2.2.2.2", task="other")) is True
    assert await answers(good, pod("b", address="2.2.2.2", task="other"), task="") is False


async def test_a_pod_that_does_not_run_yet_is_not_ready() -> None:
    assert await answers(pod("a", address="1.1.1.1"), pod("b", "Pending", address="")) is False


async def test_pods_that_ended_are_not_asked() -> None:
    assert await answers(pod("a", "Succeeded"), pod("b", deletionTimestamp="2026-06-24T09:00:00Z")) is None
