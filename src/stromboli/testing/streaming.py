"""One watch of the fake API server: history as lines, with the faults that were ordered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress

from aiohttp import web

from stromboli.kube import json
from stromboli.kube.json import JsonObject
from stromboli.kube.wire import ADDED, BOOKMARK, DELETED, INITIAL_EVENTS_END, MODIFIED
from stromboli.testing.faults import CutWatch, Duplicate, ExpireWatch, Fault, Garbage, HalfOpen, Lose, Reorder
from stromboli.testing.memory import Change, Memory, refuse
from stromboli.testing.requests import Target
from stromboli.testing.selecting import Predicate, predicate

REORDER_WINDOW = 0.05
"""Seconds for which a reordering watch waits for a second event."""


class _Broken(Exception):
    """The connection is to break here."""


class _Over(Exception):
    """The stream is to end here, in the orderly way."""


class WatchStream:
    """Sends what happens to one resource until the client leaves, the time is up or the test ends it."""

    def __init__(
        self,
        memory: Memory,
        target: Target,
        query: Mapping[str, str],
        fault: Fault | None,
        *,
        api_kind: str,
        bookmark_interval: float,
    ) -> None:
        self._memory = memory
        self._target = target
        self._matches: Predicate = predicate(target.label_selector, target.field_selector)
        self._query = query
        self._fault = fault
        self._api_kind = api_kind
        self._bookmark_interval = bookmark_interval
        self._news = asyncio.Event()
        self._ended = False
        self._broken = False
        self._sent = 0
        self._held_back: bytes | None = None

    def end(self) -> None:
        """End the stream in the orderly way."""
        self._ended = True
        self._news.set()

    def break_off(self) -> None:
        """Break the connection."""
        self._broken = True
        self._news.set()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer the request. Raises ``Gone`` when the version asked for is forgotten."""
        version, first = self._start()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        unsubscribe = self._memory.on_change(self._news.set)
        try:
            with suppress(_Over):
                await self._send_all(response, first)
                await self._follow(response, version)
            await response.write_eof()
        except _Broken:
            if request.transport:
                request.transport.close()  # what was written still arrives
        except ConnectionError:
            pass  # the client left
        finally:
            unsubscribe()
        return response

    def _start(self) -> tuple[int, list[bytes]]:
        asked = self._query.get("resourceVersion", "")
        initial = self._query.get("sendInitialEvents") == "true"
        if asked not in ("", "0") and not initial:
            self._memory.check_remembered(int(asked))
            return int(asked), []
        version = self._memory.version
        present = self._memory.list(self._target.resource, self._target.namespace)
        lines = [_line(ADDED, obj) for obj in present if self._matches(obj)]
        if initial:
            lines.append(self._bookmark(version, ends_listing=True))
        return version, lines

    async def _follow(self, response: web.StreamResponse, version: int) -> None:
        loop = asyncio.get_running_loop()
        seconds = self._query.get("timeoutSeconds")
        end = loop.time() + float(seconds) if seconds else float("inf")
        while not self._ended and loop.time() < end:
            self._news.clear()
            if self._broken:
                raise _Broken
            if isinstance(self._fault, HalfOpen) and self._sent >= self._fault.after:
                await asyncio.Event().wait()  # until the client gives up
            for change in self._memory.since(self._target.resource, version):
                version = change.version
                await self._send_all(response, self._lines_of(change))
            await self._wait(response, min(end - loop.time(), self._bookmark_interval))

    async def _wait(self, response: web.StreamResponse, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, REORDER_WINDOW if self._held_back else seconds)):
                await self._news.wait()
        except TimeoutError:
            if self._held_back:
                line, self._held_back = self._held_back, None
                await response.write(line)
            elif self._query.get("allowWatchBookmarks") == "true":
                await response.write(self._bookmark(self._memory.version))

    def _lines_of(self, change: Change) -> Iterator[bytes]:
        if self._target.namespace not in ("", json.key_of(change.after)[0]):
            return
        was = change.before is not None and self._matches(change.before)
        is_in = not change.deleted and self._matches(change.after)
        if was and is_in:
            yield _line(MODIFIED, change.after)
        elif is_in:
            yield _line(ADDED, change.after)
        elif was:
            yield _line(DELETED, change.after)

    async def _send_all(self, response: web.StreamResponse, lines: Iterator[bytes] | list[bytes]) -> None:
        for line in lines:
            await self._send(response, line)

    async def _send(self, response: web.StreamResponse, line: bytes) -> None:
        match self._fault:
            case CutWatch(after=after) if self._sent >= after:
                await response.write(line[: len(line) // 2])
                raise _Broken
            case HalfOpen(after=after) if self._sent >= after:
                await asyncio.Event().wait()  # until the client gives up
            case ExpireWatch(after=after) if self._sent >= after:
                await response.write(_line("ERROR", refuse(410, "Expired", "too old resource version").status))
                raise _Over
            case Lose(after=after, lost=False) as fault if self._sent >= after:
                fault.lost = True
                return
            case Garbage(line=garbage) if self._sent == 0:
                await response.write(garbage + b"\n")
            case Duplicate():
                await response.write(line)
            case Reorder():
                first, self._held_back = self._held_back, None
                if first is None:
                    self._held_back = line
                    return
                await response.write(line)
                line = first
            case _:
                pass
        self._sent += 1
        await response.write(line)

    def _bookmark(self, version: int, *, ends_listing: bool = False) -> bytes:
        meta: JsonObject = {"resourceVersion": str(version)}
        if ends_listing:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        return _line(BOOKMARK, {"kind": self._api_kind, "apiVersion": self._target.api_version, "metadata": meta})


def _line(kind: str, obj: JsonObject) -> bytes:
    return json.encode({"type": kind, "object": obj}) + b"\n"
