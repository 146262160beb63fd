"""A Unified Fabric Manager that says what a test tells it to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

USER, PASSWORD = "admin", "secret"


def port(leaf: str, node: str, description: str = "Computer IB Port") -> dict[str, str]:
    return {
        "description": description,
        "tier": "1",
        "system_name": node,
        "node_description": f"{node} HDR0",
        "peer_node_name": leaf,
    }


@dataclass
class FakeUfm:
    """``answer`` is what it sends: ports, or text that is none; ``status`` goes with it."""

    answer: object = field(default_factory=list)
    status: int = 200
    asked: int = 0
    url: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.asked += 1
        if request.headers.get("Authorization") != "Basic YWRtaW46c2VjcmV0":
            return web.Response(status=401)
        if isinstance(self.answer, str):
            return web.Response(status=self.status, text=self.answer)
        return web.json_response(self.answer, status=self.status)


@asynccontextmanager
async def fake_ufm(*ports: dict[str, str]) -> AsyncIterator[FakeUfm]:
    fake = FakeUfm(list(ports))
    app = web.Application()
    app.router.add_get("/ufmRest/resources/ports", fake.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        await runner.cleanup()
