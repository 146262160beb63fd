"""Looking into a running scheduler: its log level through a Unix socket, its stacks over HTTP (spec 04 section 34)."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from stromboli.api import durations
from stromboli.telemetry.logs import level_of

log = logging.getLogger(__name__)

SOCKET_DIRECTORY = "DEBUG_SOCKET_DIR"
DEFAULT_DIRECTORY = "/tmp/klog-socks"  # noqa: S108 - the documented default
SOCKET_NAME = "klog-klog.sock"
USAGE = "usage: /setlevel?level=<a number above 0>&duration=<a duration above 0, such as 10s>\n"


class LogLevelSocket:
    """``GET /setlevel?level=N&duration=D`` raises the log level for a while, ``GET /getlevel`` tells it.

    The start-up level comes back after the duration; a second request replaces the first. A directory that cannot be
    used costs the socket, not the scheduler.
    """

    def __init__(self, verbosity: int, directory: Path | None = None) -> None:
        self._start = self._verbosity = verbosity
        self._directory = directory or Path(os.environ.get(SOCKET_DIRECTORY) or DEFAULT_DIRECTORY)
        self._timer: asyncio.TimerHandle | None = None
        application = web.Application()
        application.add_routes([web.get("/setlevel", self._set), web.get("/getlevel", self._get)])
        self._runner = web.AppRunner(application, access_log=None)

    @property
    def path(self) -> Path:
        """Where the socket is."""
        return self._directory / SOCKET_NAME

    async def __aenter__(self) -> Self:
        try:
            self._directory.mkdir(mode=0o750, parents=True, exist_ok=True)
            self.path.unlink(missing_ok=True)
            await self._runner.setup()
            await web.UnixSite(self._runner, str(self.path)).start()
            self.path.chmod(0o700)
        except OSError as error:
            log.warning("no log-level socket at %s: %s", self.path, error)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cancel()
        await self._runner.cleanup()

    async def _set(self, request: web.Request) -> web.Response:
        try:
            level, text = int(request.query["level"]), request.query["duration"]
            seconds = durations.parse(text) / 1e9
        except (KeyError, ValueError):
            return web.Response(text=USAGE, status=400)
        if level <= 0 or seconds <= 0:
            return web.Response(text=USAGE, status=400)
        self._cancel()
        self._apply(level)
        self._timer = asyncio.get_running_loop().call_later(seconds, self._apply, self._start)
        return web.Response(text=f"Change klog log level to {level} successfully and  for {text}")

    async def _get(self, _request: web.Request) -> web.Response:
        return web.Response(text=f"Current klog log level: {self._verbosity}")

    def _apply(self, verbosity: int) -> None:
        self._verbosity = verbosity
        logging.getLogger("stromboli").setLevel(level_of(verbosity))

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def stack_routes() -> list[web.RouteDef]:
    """``/debug/pprof/`` and ``/debug/pprof/goroutine``: where every task and thread is, as text."""
    return [web.get("/debug/pprof/", _stacks), web.get("/debug/pprof/goroutine", _stacks)]


async def _stacks(_request: web.Request) -> web.Response:
    text = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=asyncio.Task.get_name):
        task.print_stack(file=text)
    for thread, frame in sys._current_frames().items():  # noqa: SLF001 - the one way to see other threads
        text.write(f"Thread {thread}:\n")
        traceback.print_stack(frame, file=text)
    return web.Response(text=text.getvalue())
