"""The process: its flags, and what it serves beside the page."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from stromboli.dashboard.__main__ import main, serve
from stromboli.dashboard.options import PROGRAM, Options
from stromboli.process import flags
from stromboli.process.ports import free_port
from stromboli.telemetry.listening import Address
from stromboli.testing.apiserver import FakeApiServer
from tests.dashboard.conftest import BY_NAME

REFUSED = {
    "--listen-address=nowhere": '--listen-address: invalid address "nowhere"',
    "--metrics-address=:x": '--metrics-address: invalid address ":x"',
    "--log-format=xml": 'invalid argument "xml" for --log-format',
    "--listen=:1": "unknown flag: --listen",
}


@pytest.mark.parametrize("flag", REFUSED)
def test_flags_that_cannot_work_end_the_start_in_one_line(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"{PROGRAM}: error: {REFUSED[flag]}")
    assert said.count("\n") == 1


def test_by_default_only_this_machine_reaches_the_page() -> None:
    options = flags.parse(Options, [], program=PROGRAM)
    options.check()
    assert Address.parse(options.listen_address).host == "127.0.0.1"


async def ready(session: aiohttp.ClientSession, url: str) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.02)


async def test_page_health_and_metrics_are_served(server: FakeApiServer) -> None:
    page, health, metrics = (f"127.0.0.1:{port}" for port in (free_port() for _ in range(3)))
    options = Options(
        master=server.url,
        listen_address=page,
        enable_healthz=True,
        healthz_address=health,
        enable_metrics=True,
        metrics_address=metrics,
    )
    task = asyncio.create_task(serve(options))
    try:
        async with aiohttp.ClientSession() as session:
            await ready(session, f"http://{health}/readyz")
            for url, want in (
                (f"http://{page}/", "<title>Stromboli</title>"),
                (f"http://{metrics}/metrics", "connected 1.0"),
            ):
                async with session.get(url) as answer:
                    assert want in await answer.text()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    listed = {call.kind for call in server.calls}
    assert listed == {kind.plural for kind in BY_NAME.values()}
    assert {call.verb for call in server.calls} <= {"list", "watch"}, "it only reads"
