"""Watches over HTTP: one line of JSON for each change, bookmarks in between, an ``ERROR`` line at a bad end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson
from aiohttp import web

from stromboli.localcluster import clock, statuses
from stromboli.localcluster.catalog import ServedKind
from stromboli.localcluster.http import answers, queries, streaming
from stromboli.localcluster.http.listing import too_large
from stromboli.localcluster.http.negotiating import Answering
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.selecting import Selection
from stromboli.localcluster.storage import Event, Gone, Object, Stored, Watch
from stromboli.localcluster.tables.rendering import table

BOOKMARK_INTERVAL = 60.0
"""Seconds between bookmarks."""

LOOK_INTERVAL = 1.0
"""Seconds between two looks whether the client is still there."""

SHORTEST = 1800
"""Seconds a watch without ``timeoutSeconds`` lasts at least; at most twice as long, at random."""

_LINES_A_WRITE = 500
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Viewer:
    """How one watch sees changes: through its selectors, in its form."""

    served: ServedKind
    selection: Selection | None
    answering: Answering
    include: str = "Metadata"

    def line(self, event: Event) -> bytes | None:
        """The line for a change, or None when it is none of this watch's business.

        An object that no longer matches is ``DELETED``, one that matches now is ``ADDED``.
        """
        is_in = event.type != "DELETED" and self._matches(event.stored)
        was_in = event.old is not None and self._matches(event.old)
        if event.type == "DELETED":
            return self._line(b"DELETED", event.stored) if was_in else None
        if is_in:
            return self._line(b"MODIFIED" if was_in else b"ADDED", event.stored)
        return self._line(b"DELETED", _as_of(event)) if was_in else None

    def initial(self, stored: Stored) -> bytes | None:
        """The line for an object that was there already."""
        return self._line(b"ADDED", stored) if self._matches(stored) else None

    def bookmark(self, revision: int, *, initial_end: bool = False) -> bytes:
        """The line that says how far this watch has come."""
        metadata: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
        if initial_end:
            metadata["annotations"] = {_INITIAL_EVENTS_END: "true"}
        kind = self.served.kind
        obj: Object = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        if self.answering.form == "table":
            obj = table(self.served, [], {"resourceVersion": str(revision)}, clock.now(), headed=False)
            if initial_end:
                obj["rows"] = [{"cells": [], "object": {**answers.partial({"metadata": metadata})}}]
        elif self.answering.form == "metadata":
            obj = answers.partial(obj)
        return _wrap(b"BOOKMARK", orjson.dumps(obj))

    def _matches(self, stored: Stored) -> bool:
        return self.selection is None or self.selection.matches(stored.object)

    def _line(self, kind: bytes, stored: Stored) -> bytes:
        match self.answering.form:
            case "objects":
                return _wrap(kind, answers.encoded_as(stored, self.served.kind.api_version))
            case "metadata":
                return _wrap(kind, orjson.dumps(answers.partial(stored.object, self.answering.version)))
            case "table":
                metadata = {"resourceVersion": str(stored.revision)}
                rendered = table(self.served, [stored.object], metadata, clock.now(), include=self.include)
                return _wrap(kind, orjson.dumps(rendered))


def _as_of(event: Event) -> Stored:
    """The old object under the revision of the change, so that clients resume from the right place."""
    assert event.old is not None
    old = event.old.object
    metadata = {**old["metadata"], "resourceVersion": str(event.revision)}
    return Stored(event.stored.key, {**old, "metadata": metadata}, event.revision)


def _wrap(kind: bytes, encoded: bytes) -> bytes:
    return b'{"type":"' + kind + b'","object":' + encoded + b"}\n"


def error_line(error: statuses.StatusError) -> bytes:
    """The line that ends a watch that cannot go on."""
    return _wrap(b"ERROR", orjson.dumps(error.to_wire()))


@dataclass(slots=True)
class Plan:
    """Where a watch starts: from which revision, and with which objects first."""

    watch: Watch
    initial: list[Stored]
    bookmark_initial_end: bool
    bookmarks: bool
    seconds: float


def plan(registry: Registry, viewer: Viewer, namespace: str, query: Mapping[str, str]) -> Plan:
    """Read a watch request that :func:`queries.check_list` lets pass. 410 is left to the stream; 504 is raised here."""
    since = queries.revision(query)
    send_initial = queries.flag(query, "sendInitialEvents")
    bookmarks = queries.flag(query, "allowWatchBookmarks")
    if since > registry.store.revision:
        raise too_large(since, registry.store.revision)
    kind = viewer.served.kind
    from_scratch = send_initial or (since == 0 and "sendInitialEvents" not in query)
    initial = registry.store.list(kind, namespace) if from_scratch else []
    watch = registry.watch(kind, namespace, None if from_scratch or not since else since)
    seconds = float(queries.integer(query, "timeoutSeconds") or random.uniform(SHORTEST, 2 * SHORTEST))
    return Plan(watch, initial, send_initial and bookmarks, bookmarks, seconds)


async def stream(request: web.Request, planned: Plan, viewer: Viewer) -> web.StreamResponse:
    """Serve the watch until its time is over, the client leaves, or the log has moved on."""
    headers = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
    response = web.StreamResponse(headers=headers)
    answers.add_warnings(request, response)
    response.enable_chunked_encoding()
    return await streaming.written(request, response, lambda: _serve(request, response, planned, viewer))


async def _serve(request: web.Request, response: web.StreamResponse, planned: Plan, viewer: Viewer) -> None:
    try:
        await _send_initial(response, planned, viewer)
        async with asyncio.timeout(planned.seconds):
            await _follow(request, response, planned, viewer)
    except TimeoutError:
        pass
    except Gone as error:
        await response.write(error_line(statuses.expired(str(error))))


async def _send_initial(response: web.StreamResponse, planned: Plan, viewer: Viewer) -> None:
    for chunk in _chunks(filter(None, map(viewer.initial, planned.initial))):
        await response.write(chunk)
    if planned.bookmark_initial_end:
        await response.write(viewer.bookmark(planned.watch.revision, initial_end=True))


async def _follow(request: web.Request, response: web.StreamResponse, planned: Plan, viewer: Viewer) -> None:
    loop = asyncio.get_running_loop()
    next_bookmark = loop.time() + BOOKMARK_INTERVAL
    while request.transport is not None:
        # A client that leaves is noticed by looking: handlers are not told.
        events = await planned.watch.batch(min(LOOK_INTERVAL, max(0.0, next_bookmark - loop.time())))
        for chunk in _chunks(filter(None, map(viewer.line, events))):
            await response.write(chunk)
        if loop.time() >= next_bookmark:
            next_bookmark = loop.time() + BOOKMARK_INTERVAL
            if planned.bookmarks:
                await response.write(viewer.bookmark(planned.watch.revision))


def _chunks(lines: Iterator[bytes]) -> Iterator[bytes]:
    chunk: list[bytes] = []
    for line in lines:
        chunk.append(line)
        if len(chunk) == _LINES_A_WRITE:
            yield b"".join(chunk)
            chunk = []
    if chunk:
        yield b"".join(chunk)
