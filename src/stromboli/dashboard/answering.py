"""Answers as they go over the wire: encoded, tagged and compressed once for all who ask the same."""

from __future__ import annotations

import gzip
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, Final

import orjson
from aiohttp import web

from stromboli.dashboard.following import Connection

COMPRESSED_FROM: Final = 2048
"""Bytes; shorter answers are sent as they are."""
KEPT: Final = 16
"""Answers that are kept: all sections, and as many different searches as few readers have at a time."""


class Answer:
    """A body with its media type and its tag."""

    def __init__(self, body: bytes, kind: str) -> None:
        self.body = body
        self.kind = kind
        self.tag = hashlib.blake2b(body, digest_size=12).hexdigest()

    @cached_property
    def packed(self) -> bytes:
        """The body, compressed."""
        return gzip.compress(self.body, mtime=0)

    def to(self, request: web.Request) -> web.Response:
        """The response to one reader: 304 where the browser has it already, compressed where it reads that."""
        headers = {"ETag": f'W/"{self.tag}"'}
        if any(known.value in (self.tag, "*") for known in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        body = self.body
        if len(body) >= COMPRESSED_FROM:
            headers["Vary"] = "Accept-Encoding"
            if "gzip" in request.headers.get("Accept-Encoding", "").lower():
                headers["Content-Encoding"] = "gzip"
                body = self.packed
        return web.Response(body=body, content_type=self.kind, charset="utf-8", headers=headers)


def as_json(connection: Connection, content: dict[str, Any]) -> Answer:
    """What is told of the cluster, and how it stands with the cluster."""
    return Answer(orjson.dumps({"connection": connection, **content}), "application/json")


class Answers:
    """The latest answers by question. One is made anew when the section that it is made of is another object."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[object, Connection, Answer]] = OrderedDict()

    def get(
        self, question: Hashable, section: object, connection: Connection, make: Callable[[], dict[str, Any]]
    ) -> Answer:
        """The answer to ``question``; ``make`` gives its content from ``section``, if that is not at hand."""
        known = self._kept.get(question)
        if known is None or known[0] is not section or known[1] != connection:
            known = (section, connection, as_json(connection, make()))
            self._kept[question] = known
        self._kept.move_to_end(question)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return known[2]
