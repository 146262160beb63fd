"""HTTP/1.1 as bytes: requests into them, answers out of them, however the network cuts these (RFC 9112). Pure: no I/O.

Made for short requests to API servers: of an answer the status, Retry-After and the whole body are kept. Answers are
parsed by httptools (llhttp); what stands here is what a parser of streams leaves to its user: one whole answer a
request, limits of size, what was not asked for (another protocol, packed bodies), and bodies without an end of their
own, for which httptools has no call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, urlencode

from httptools import HttpParserError, HttpResponseParser

MAX_HEAD_BYTES = 64 * 2**10
"""More bytes than these, without one of a body among them, are no head, chunk line or trailer."""
MAX_BODY_BYTES = 256 * 2**20
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


class AnswerReader:
    """Reads one answer after the other from a connection. Of no use any more after BadAnswer."""

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self._begin_answer()

    def _begin_answer(self) -> None:
        self._answer: Answer | None = None
        self._started = False
        self._outside = 0
        self._pieces: list[bytes] = []
        self._size = 0
        self._begin_head()

    def _begin_head(self) -> None:
        self._head_read = False
        self._status = 0
        self._framed = False
        self._retry_after: str | None = None
        self._keep_alive = False

    @property
    def idle(self) -> bool:
        """Whether nothing of an answer has come yet."""
        return not self._started

    def feed(self, data: bytes) -> Answer | None:
        """Take in more bytes; the answer once it is complete. Raises BadAnswer."""
        self._started = True
        size = self._size
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            if self._answer is None:
                raise BadAnswer(str(error.__context__ or f"the server does not speak HTTP/1.1: {error}")) from error
            # What follows an answer without a request belongs to nothing.
            self._answer = self._answer._replace(keep_alive=False)
        if self._answer is None:
            self._outside = self._outside + len(data) if self._size == size else 0
            if self._outside > MAX_HEAD_BYTES:
                raise BadAnswer(f"{self._outside} bytes of the answer are none of its body")
            return None
        answer = self._answer
        self._begin_answer()
        return answer

    def end(self) -> Answer:
        """The connection has ended: the answer, if it goes on until there. Raises BadAnswer if it is incomplete."""
        if not self._head_read or self._framed:
            raise BadAnswer("the connection ended in the middle of the answer")
        return Answer(self._status, b"".join(self._pieces), self._retry_after, keep_alive=False)

    # -- what the parser calls; what one of these raises ends its work ---------------------------------------------

    def on_message_begin(self) -> None:
        """Refuse what comes after a whole answer."""
        if self._answer is not None:
            raise BadAnswer("bytes follow the answer unasked")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note what one field of the head says, as far as it matters."""
        if self._head_read:  # a trailer
            return
        match name.lower():
            case b"content-length":
                self._framed = True
                _check_size(int(value))
            case b"transfer-encoding":
                self._framed = True
                if value.strip().lower() != b"chunked":
                    raise BadAnswer(f"Transfer-Encoding is {value[:80]!r}")
            case b"content-encoding" if value.strip().lower() != b"identity":
                raise BadAnswer(f"the answer is packed ({value[:80]!r}), which was not asked for")
            case b"retry-after":
                self._retry_after = value.strip().decode("latin-1")

    def on_headers_complete(self) -> None:
        """Note the status, and whether the connection outlives the answer."""
        self._status = self._parser.get_status_code()
        if self._status == 101:
            raise BadAnswer("the server changes to another protocol unasked")
        if (version := self._parser.get_http_version()) not in ("1.1", "1.0"):
            raise BadAnswer(f"the server speaks HTTP/{version}, not HTTP/1.1")
        self._keep_alive = self._parser.should_keep_alive()
        self._head_read = True

    def on_body(self, piece: bytes) -> None:
        """Keep a piece of the body."""
        self._size += len(piece)
        _check_size(self._size)
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """Make the answer, or go on to the next head after an interim one."""
        if self._status < 200:
            self._begin_head()
        else:
            self._answer = Answer(self._status, b"".join(self._pieces), self._retry_after, self._keep_alive)


def _check_size(size: int) -> None:
    if size > MAX_BODY_BYTES:
        raise BadAnswer(f"the answer is longer than {MAX_BODY_BYTES} bytes")
