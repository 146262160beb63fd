"""The HTTP side: the page, its files, the view as JSON, and word of changes. Answers GET and HEAD only."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

import orjson
from aiohttp import web

from stromboli.dashboard.filtering import BadFilter, Filter, page
from stromboli.dashboard.following import Follower
from stromboli.dashboard.guarding import add_headers, known_hosts
from stromboli.dashboard.making import Sections
from stromboli.dashboard.measuring import DashboardMetrics, measured

PAGE: Final = Path(__file__).with_name("page")
TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
COMPRESSED_FROM: Final = 2048
"""Bytes; shorter answers are sent as they are."""
STREAMS: Final = 200
"""Readers of ``/api/changes`` at a time; more are asked to come back, and their pages look every few seconds."""
CHANGES_APART: Final = 0.5
"""Seconds between two words of change to one reader."""
SILENCE: Final = 10.0
"""Seconds after which a reader is told that nothing has changed, so that both sides notice when the other has gone."""


class Pages:
    """The handlers over one follower."""

    def __init__(self, follower: Follower, sections: Sections, metrics: DashboardMetrics) -> None:
        self._follower = follower
        self._sections = sections
        self._metrics = metrics
        self._streams = 0
        self.closing = asyncio.Event()

    def routes(self) -> list[web.RouteDef]:
        """Everything that is answered."""
        sections = self._sections
        return [
            web.get("/", file_handler("index.html")),
            *(web.get(f"/assets/{path.name}", file_handler(path.name)) for path in assets()),
            web.get("/api/view", self._whole(lambda: {"overview": sections.overview(), "pace": sections.pace()})),
            web.get("/api/queues", self._whole(lambda: {"queues": sections.queues()})),
            web.get("/api/topology", self._whole(lambda: {"topology": sections.topology()})),
            web.get("/api/jobs", self._paged(sections.jobs)),
            web.get("/api/podgroups", self._paged(sections.groups)),
            web.get("/api/events", self._paged(sections.events)),
            web.get("/api/changes", self._changes),
        ]

    def _whole(self, make: Callable[[], dict[str, Any]]) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.Response:
            return self._json(request, make())

        return answer

    def _paged(self, rows: Callable[[], Any]) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.Response:
            try:
                wanted = Filter.read(request.query)
            except BadFilter as error:
                raise web.HTTPBadRequest(text=f"400: {error}\n") from error
            return self._json(request, {"page": page(rows(), wanted)})

        return answer

    def _json(self, request: web.Request, content: dict[str, Any]) -> web.Response:
        body = orjson.dumps({"connection": self._follower.connection(), **content})
        return answered(request, body, "application/json")

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events: the revision, whenever it is another one."""
        if self._streams >= STREAMS:
            raise web.HTTPServiceUnavailable(text="503: too many readers\n", headers={"Retry-After": "30"})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        self._streams += 1
        self._metrics.streams.set(self._streams)
        try:
            await self._tell(response)
        except ConnectionError:
            pass  # the reader has gone
        finally:
            self._streams -= 1
            self._metrics.streams.set(self._streams)
        return response

    async def _tell(self, response: web.StreamResponse) -> None:
        revision = -1
        while not self.closing.is_set():
            now = self._follower.revision
            line = f"data: {now}\n\n" if now != revision else ": nothing new\n\n"
            await response.write(line.encode())
            revision = now
            await self._pause(CHANGES_APART)
            await self._next(revision)

    async def _next(self, revision: int) -> None:
        """Until there is another revision, silence has lasted long enough, or the process ends."""
        waits = [asyncio.create_task(self._follower.changed(revision)), asyncio.create_task(self.closing.wait())]
        try:
            await asyncio.wait(waits, timeout=SILENCE, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.closing.wait(), seconds)
        except TimeoutError:
            pass


def assets() -> list[Path]:
    """The files of the page, without the page itself."""
    return sorted(path for path in PAGE.iterdir() if path.suffix in TYPES and path.name != "index.html")


def file_handler(name: str) -> Callable[[web.Request], Any]:
    """Answers a file of the package, read once."""
    path = PAGE / name
    body, kind = path.read_bytes(), TYPES[path.suffix]

    async def answer(request: web.Request) -> web.Response:
        return answered(request, body, kind)

    return answer


def answered(request: web.Request, body: bytes, kind: str) -> web.Response:
    """The body with its tag, or 304 where the browser has it already."""
    tag = hashlib.blake2b(body, digest_size=12).hexdigest()
    if any(known.value in (tag, "*") for known in request.if_none_match or ()):
        return web.Response(status=304, headers={"ETag": f'W/"{tag}"'})
    response = web.Response(body=body, content_type=kind, charset="utf-8", headers={"ETag": f'W/"{tag}"'})
    if len(body) >= COMPRESSED_FROM:
        response.enable_compression()
    return response


def application(
    follower: Follower, metrics: DashboardMetrics, *, allowed_hosts: Collection[str] = ()
) -> web.Application:
    """The whole of it."""
    pages = Pages(follower, Sections(follower, took=metrics.took), metrics)
    app = web.Application(middlewares=[measured(metrics), known_hosts(allowed_hosts)])
    app.add_routes(pages.routes())
    app.on_response_prepare.append(add_headers)

    async def close(_app: web.Application) -> None:
        pages.closing.set()

    app.on_shutdown.append(close)
    return app
