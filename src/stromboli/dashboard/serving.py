"""The HTTP side: the page, its files, the view as JSON, and word of changes. Answers GET and HEAD only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from stromboli.dashboard.answering import Answer, Answers, as_json
from stromboli.dashboard.filtering import BadFilter, Filter, page
from stromboli.dashboard.following import Follower
from stromboli.dashboard.guarding import add_headers, known_hosts
from stromboli.dashboard.making import Sections
from stromboli.dashboard.measuring import DashboardMetrics, measured

PAGE: Final = Path(__file__).with_name("page")
TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
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
        self._answers = Answers()
        self._streams = 0
        self.closing = asyncio.Event()

    def routes(self) -> list[web.RouteDef]:
        """Everything that is answered."""
        sections = self._sections
        return [
            web.get("/", file_handler("index.html")),
            *(web.get(f"/assets/{path.name}", file_handler(path.name)) for path in assets()),
            web.get("/api/view", self._view),
            web.get("/api/queues", self._whole("queues", sections.queues)),
            web.get("/api/topology", self._whole("topology", sections.topology)),
            web.get("/api/jobs", self._paged(sections.jobs)),
            web.get("/api/podgroups", self._paged(sections.groups)),
            web.get("/api/events", self._paged(sections.events)),
            web.get("/api/changes", self._changes),
        ]

    async def _view(self, request: web.Request) -> web.Response:
        """The first page. It holds the time, so it is another one for everybody."""
        content = {"overview": self._sections.overview(), "pace": self._sections.pace()}
        return as_json(self._follower.connection(), content).to(request)

    def _whole(self, name: str, make: Callable[[], Any]) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.Response:
            section = make()
            return self._shared(name, section, lambda: {name: section}).to(request)

        return answer

    def _paged(self, rows: Callable[[], Any]) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.Response:
            try:
                wanted = Filter.read(request.query)
            except BadFilter as error:
                raise web.HTTPBadRequest(text=f"400: {error}\n") from error
            section = rows()
            return self._shared((request.path, wanted), section, lambda: {"page": page(section, wanted)}).to(request)

        return answer

    def _shared(self, question: Hashable, section: object, make: Callable[[], dict[str, Any]]) -> Answer:
        return self._answers.get(question, section, self._follower.connection(), make)

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
    file = Answer(path.read_bytes(), TYPES[path.suffix])

    async def answer(request: web.Request) -> web.Response:
        return file.to(request)

    return answer


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
