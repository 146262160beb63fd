"""Watch streams as bytes: lines out of chunks, and the envelope around each object.

Objects stay bytes, for the reader to decode into what it needs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from stromboli.kube.errors import MalformedAnswer, from_status
from stromboli.kube.json import decode_object

MAX_LINE_BYTES = 64 * 2**20
ADDED, MODIFIED, DELETED, BOOKMARK = "ADDED", "MODIFIED", "DELETED", "BOOKMARK"
UNREADABLE = "UNREADABLE"
"""Type given to a line that is not a watch event; its object is the line itself."""


INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an object's metadata that tells who it is and how old this view of it is."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct):
    metadata: Metadata = Metadata()


class WatchEvent(msgspec.Struct, frozen=True):
    """Type and object of one watch line, the object still encoded."""

    type: str
    object: bytes

    @property
    def metadata(self) -> Metadata:
        """Metadata of the object; empty where the bytes do not have any."""
        return metadata(self.object)

    @property
    def ends_listing(self) -> bool:
        """Whether this is the bookmark after the initial events of a streaming list."""
        return self.type == BOOKMARK and (self.metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


class ByteSource(Protocol):
    """Where chunks come from: aiohttp's stream reader."""

    async def readany(self) -> bytes:
        """The next bytes, empty at the end."""
        ...


_DECODER = msgspec.json.Decoder(_Envelope)
_METADATA_DECODER = msgspec.json.Decoder(_Object)


def metadata(raw: bytes) -> Metadata:
    """Metadata of an encoded object, without decoding the rest. Empty where there is none to be found."""
    try:
        return _METADATA_DECODER.decode(raw).metadata
    except msgspec.DecodeError:
        return Metadata()


async def lines(source: ByteSource) -> AsyncIterator[bytes]:
    """Complete lines of a stream. What follows the last newline is dropped: it was cut, and will be sent again.

    Raises :class:`MalformedAnswer` for a line over 64 MiB, because memory is not the sender's to fill.
    """
    parts: list[bytes] = []
    size = 0
    while chunk := await source.readany():
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        size += len(first)
        for part in rest:
            line = b"".join(parts)
            parts, size = [part], len(part)
            if line and not line.isspace():
                yield line
        if size > MAX_LINE_BYTES:
            raise MalformedAnswer(f"a watch line is longer than {MAX_LINE_BYTES} bytes")


def parse_line(line: bytes) -> WatchEvent:
    """The event on one line.

    An ``ERROR`` event is raised as the error that its Status stands for. A line that is no event comes back as
    :data:`UNREADABLE`, so that one bad line does not end the stream.
    """
    try:
        envelope = _DECODER.decode(line)
    except msgspec.DecodeError:
        return WatchEvent(UNREADABLE, line)
    raw = bytes(envelope.object)
    if envelope.type != "ERROR":
        return WatchEvent(envelope.type, raw)
    try:
        status = decode_object(raw)
    except ValueError as error:
        raise MalformedAnswer(f"an ERROR event without a Status: {raw[:80]!r}") from error
    raise from_status(status)
