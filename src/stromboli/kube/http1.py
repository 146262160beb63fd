"""HTTP/1.1 as bytes: requests into them, answers out of them, however the network cuts these (RFC 9112). Pure: no I/O.

Made for short requests to API servers: of an answer the status, Retry-After and the whole body are kept; all other
fields only decide where the body ends and whether the connection can be used again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, urlencode

MAX_HEAD_BYTES = 64 * 2**10
MAX_BODY_BYTES = 256 * 2**20
_END_OF_HEAD = b"\r\n\r\n"
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._:-]*")
_LINE_BREAKS = re.compile(r"[\r\n\0]")


class BadAnswer(ValueError):
    """The bytes are no HTTP/1.1 answer, or one that is larger than anything an API server sends."""


def target(path: str, query: Mapping[str, str]) -> str:
    """What stands in the request line for a path and its parameters."""
    if not _PLAIN_PATH.fullmatch(path):
        path = quote(path, safe="/:@!$&'()*+,;=~")
    return f"{path}?{urlencode(query)}" if query else path


def compose(method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """One whole request. Raises ValueError for a header that would break out of its line."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if len(_LINE_BREAKS.findall(lines)) != 2 * len(headers):
        raise ValueError("a header of the request contains a line break")
    size = f"Content-Length: {len(body or b'')}\r\n" if body is not None or method in ("POST", "PUT", "PATCH") else ""
    return f"{method} {target} HTTP/1.1\r\n{lines}{size}\r\n".encode() + (body or b"")


class Answer(NamedTuple):
    """One whole answer."""

    status: int
    body: bytes
    retry_after: str | None = None
    keep_alive: bool = True
    """Whether another request may follow on the connection."""


@dataclass(slots=True)
class _Head:
    """What the status line and the header fields say, as far as it matters."""

    status: int
    keep_alive: bool
    length: int | None = None
    chunked: bool = False
    retry_after: str | None = None


class AnswerReader:
    """Reads one answer after the other from a connection."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._chunks: list[bytes] = []
        self._size = 0

    @property
    def idle(self) -> bool:
        """Whether nothing of an answer has come yet."""
        return self._head is None and not self._buffer

    def feed(self, data: bytes) -> Answer | None:
        """Take in more bytes; the answer once it is complete. Raises BadAnswer."""
        self._buffer += data
        while self._head is None:
            head = self._take_head()
            if head is None:
                return None
            if head.status == 101:
                raise BadAnswer("the server changes to another protocol unasked")
            if head.status >= 200:  # below are interim answers
                self._head = head
        body = self._take_body(self._head)
        return None if body is None else self._finish(self._head, body)

    def end(self) -> Answer:
        """The connection has ended: the answer, if it goes on until there. Raises BadAnswer if it is incomplete."""
        head = self._head
        if head is None or head.chunked or head.length is not None:
            raise BadAnswer("the connection ended in the middle of the answer")
        return self._finish(head, self._take(len(self._buffer)))._replace(keep_alive=False)

    def _finish(self, head: _Head, body: bytes) -> Answer:
        # What follows an answer without a request belongs to nothing.
        keep_alive = head.keep_alive and not self._buffer
        self._head, self._chunks, self._size = None, [], 0
        return Answer(head.status, body, head.retry_after, keep_alive)

    def _take_head(self) -> _Head | None:
        end = self._buffer.find(_END_OF_HEAD)
        if end < 0 and len(self._buffer) <= MAX_HEAD_BYTES:
            return None
        if not 0 <= end <= MAX_HEAD_BYTES:
            raise BadAnswer(f"the head of the answer is longer than {MAX_HEAD_BYTES} bytes")
        head = _parse_head(bytes(self._buffer[:end]))
        del self._buffer[: end + len(_END_OF_HEAD)]
        return head

    def _take_body(self, head: _Head) -> bytes | None:
        """The body if it is there as a whole."""
        if head.status in (204, 304):
            return b""
        if head.chunked:
            return self._take_chunks()
        if head.length is None:
            _check_size(len(self._buffer))
            return None
        return self._take(head.length) if len(self._buffer) >= head.length else None

    def _take_chunks(self) -> bytes | None:
        """All chunks and the trailer after them; what is complete is taken even when something is missing."""
        while (end := self._buffer.find(b"\r\n")) >= 0:
            size = _chunk_size(bytes(self._buffer[:end]))
            if size == 0:
                return self._take_trailer(end)
            if len(self._buffer) < end + 2 + size + 2:
                return None
            del self._buffer[: end + 2]
            self._size += size
            _check_size(self._size)
            self._chunks.append(self._take(size))
            if self._take(2) != b"\r\n":
                raise BadAnswer("a chunk is longer than it says")
        if len(self._buffer) > MAX_HEAD_BYTES:
            raise BadAnswer("a chunk without a size")
        return None

    def _take_trailer(self, start: int) -> bytes | None:
        # The last chunk's line and the (mostly empty) trailer end like a head: with an empty line.
        end = self._buffer.find(_END_OF_HEAD, start)
        if end < 0:
            return None
        del self._buffer[: end + len(_END_OF_HEAD)]
        return b"".join(self._chunks)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken


def _parse_head(raw: bytes) -> _Head:
    first, *fields = raw.split(b"\r\n")
    version, _, rest = first.partition(b" ")
    status = rest[:3]
    if version not in (b"HTTP/1.1", b"HTTP/1.0") or not status.isdigit() or len(status) != 3:
        raise BadAnswer(f"the server does not speak HTTP/1.1: {first[:80]!r}")
    head = _Head(int(status), keep_alive=version == b"HTTP/1.1")
    for field in fields:
        name, colon, value = field.partition(b":")
        if not colon:
            raise BadAnswer(f"a header field without a name: {field[:80]!r}")
        _note(head, name.lower(), value.strip())
    return head


def _note(head: _Head, name: bytes, value: bytes) -> None:
    if name == b"content-length":
        if not value.isdigit() or int(value) > MAX_BODY_BYTES or head.length not in (None, int(value)):
            raise BadAnswer(f"Content-Length is {value[:80]!r}")
        head.length = int(value)
    elif name == b"transfer-encoding":
        if value.lower() != b"chunked":
            raise BadAnswer(f"Transfer-Encoding is {value[:80]!r}")
        head.chunked = True
    elif name == b"content-encoding" and value.lower() != b"identity":
        raise BadAnswer(f"the answer is packed ({value[:80]!r}), which was not asked for")
    elif name == b"connection":
        head.keep_alive = head.keep_alive and b"close" not in value.lower()
    elif name == b"retry-after":
        head.retry_after = value.decode("latin-1")


_HEXADECIMAL = re.compile(rb"[0-9A-Fa-f]{1,8}")


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not _HEXADECIMAL.fullmatch(digits):
        raise BadAnswer(f"a chunk of size {line[:80]!r}")
    size = int(digits, 16)
    _check_size(size)
    return size


def _check_size(size: int) -> None:
    if size > MAX_BODY_BYTES:
        raise BadAnswer(f"the answer is longer than {MAX_BODY_BYTES} bytes")
