"""Responses: JSON (reusing encoded objects) or YAML, pretty printed and compressed on demand."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import yaml
from aiohttp import web

from stromboli.localcluster.http.negotiating import YAML, Answering
from stromboli.localcluster.requests import Listing
from stromboli.localcluster.storage import Object, Stored

WARNINGS = web.RequestKey("warnings", list[str])
"""Key of a request under which warnings wait for the response."""

_COMPRESSED_FROM = 128 * 1024
_THREAD_FROM = 1024 * 1024


def partial(obj: Object, version: str = "v1") -> Object:
    """``PartialObjectMetadata`` of an object."""
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": obj["metadata"]}


def encode_list(kind: str, api_version: str, listing: Listing, items: Iterable[bytes]) -> bytes:
    """A list, from items that are encoded already."""
    metadata: dict[str, Any] = {"resourceVersion": str(listing.revision)}
    if listing.continue_token:
        metadata |= {"continue": listing.continue_token, "remainingItemCount": listing.remaining}
    head = orjson.dumps({"kind": kind, "apiVersion": api_version, "metadata": metadata})
    return b"".join((head[:-1], b',"items":[', *_separated(items), b"]}"))


def _separated(items: Iterable[bytes]) -> Iterable[bytes]:
    """With commas in between; one join over all parts copies a large list once only."""
    for index, item in enumerate(items):
        if index:
            yield b","
        yield item


def encoded_items(items: Sequence[Stored], api_version: str) -> Iterable[bytes]:
    """Items of a list in the version that is asked for."""
    return (encoded_as(stored, api_version) for stored in items)


def encoded_as(stored: Stored, api_version: str) -> bytes:
    """One object in the version that is asked for (the stored bytes, unless it was written in another version)."""
    marker = b'{"apiVersion":"' + api_version.encode() + b'"'
    if stored.encoded.startswith(marker):
        return stored.encoded
    return orjson.dumps({**stored.object, "apiVersion": api_version})


async def respond(request: web.Request, body: Object | bytes, answering: Answering, code: int = 200) -> web.Response:
    """The response for an object, or for JSON that is encoded already."""
    payload = body if isinstance(body, bytes) else _dump(body, _is_pretty(request))
    if answering.media_type == YAML:
        payload = yaml.dump(orjson.loads(payload), Dumper=yaml.CSafeDumper, sort_keys=False).encode()
    headers = {"Content-Type": answering.media_type, "Cache-Control": "no-cache, private"}
    if len(payload) >= _COMPRESSED_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        payload = await _compressed(payload)
    response = web.Response(body=payload, status=code, headers=headers)
    add_warnings(request, response)
    return response


async def _compressed(payload: bytes) -> bytes:
    if len(payload) < _THREAD_FROM:
        return gzip.compress(payload, 1)
    return await asyncio.to_thread(gzip.compress, payload, 1)


def _is_pretty(request: web.Request) -> bool:
    pretty = request.query.get("pretty")
    if pretty is not None:
        return pretty not in ("false", "0")
    return request.headers.get("User-Agent", "").startswith(("curl", "Mozilla", "Wget"))


def _dump(body: Object, pretty: bool) -> bytes:
    return orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE if pretty else None)


def add_warnings(request: web.Request, response: web.StreamResponse) -> None:
    """Put the warnings of a request into ``Warning`` headers (RFC 7234, code 299)."""
    for text in dict.fromkeys(request.get(WARNINGS, ())):
        quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        response.headers.add("Warning", f'299 - "{quoted}"')
