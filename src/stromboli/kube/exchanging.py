"""Short requests over kept connections: one request, one answer, with nothing that a write does not need.

Writes go this way because they come by the thousand: a general HTTP client spends three times as long on each, and two
writes a pod are most of what a scheduler does. Lists, watches and whatever goes through a proxy stay with aiohttp.

* A connection carries one exchange at a time. One whose exchange was cut short (cancelled, late, broken) is closed.
* A request whose kept connection turns out to be closed before anything of an answer came is sent once more on a new
  one if it is safe to repeat; others fail, since they may have been carried out.
* A connection that nobody has used for 15 s is not used again: servers close idle ones, and one must not meet that.
* A new connection costs as much as ten requests (TLS), on both sides. Beyond the first few, one is opened only for a
  request that has waited for another to become free, and one at a time: a thousand requests at once take turns, a slow
  server is not burdened further, and requests that hang do not hold up the others.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Callable
from typing import cast

from stromboli.kube.http1 import Answer, AnswerReader, BadAnswer

IDLE_SECONDS = 15.0
READILY_OPENED = 16
"""Connections that are opened without waiting for one to become free."""
TURN_SECONDS = 0.1
"""How long a request waits for a connection to become free before one is opened for it, the next so much later."""
LONGEST_TURN_SECONDS = 1.0
"""Nobody waits longer: what is in a hurry, such as a lease, must not stand behind a hundred requests that hang."""
REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})


class NotConnected(ConnectionError):
    """No connection came about, so nothing was sent."""


class AnswerLost(ConnectionError):
    """The connection ended, or made no sense, before the answer was complete."""


class _Stale(AnswerLost):
    """A kept connection was closed by the server before anything of the answer came."""


class _Exchange(asyncio.Protocol):
    """One connection; ``on_lost`` is told of its end."""

    def __init__(self, on_lost: Callable[[_Exchange], None]) -> None:
        self._on_lost = on_lost
        self.released_at = 0.0
        self._reader = AnswerReader()
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._exchanges = 0

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, request: bytes) -> asyncio.Future[Answer]:
        """Send a request; the future is done when its answer is complete or cannot be."""
        assert self._transport is not None and self._waiter is None
        self._waiter = asyncio.get_running_loop().create_future()
        self._exchanges += 1
        self._transport.write(request)
        return self._waiter

    def close(self) -> None:
        """End the connection, whatever is under way on it."""
        self._waiter = None
        if self._transport is not None:
            self._transport.abort()

    # -- what the event loop calls ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:  # nobody has asked anything
            self.close()
            return
        try:
            answer = self._reader.feed(data)
        except BadAnswer as error:
            self._fail(AnswerLost(str(error)))
            return
        if answer is not None:
            self._finish(answer)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._on_lost(self)
        if self._waiter is None:
            return
        if self._reader.idle:
            kind = _Stale if self._exchanges > 1 else AnswerLost
            self._fail(kind(str(error) if error else "the server closed the connection"))
            return
        try:
            self._finish(self._reader.end())
        except BadAnswer as cut:
            self._fail(AnswerLost(str(error or cut)))

    def _finish(self, answer: Answer) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(answer)

    def _fail(self, error: Exception) -> None:
        waiter = self._waiter
        self.close()
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)


class Exchanges:
    """The connections to one server, at most ``limit`` of them."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        server_hostname: str | None = None,
        limit: int = 256,
        connect_timeout: float = 10.0,
    ) -> None:
        self._host, self._port = host, port
        self._tls = tls
        self._server_hostname = (server_hostname or host) if tls else None
        self._connect_timeout = connect_timeout
        self._places = asyncio.Semaphore(limit)
        self._open = 0
        self._kept: deque[_Exchange] = deque()
        self._waiting: deque[tuple[float, asyncio.Future[_Exchange | None]]] = deque()
        """Since when, and who: the longest first."""
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def kept(self) -> int:
        """Connections that wait for their next request."""
        return len(self._kept)

    async def exchange(self, method: str, request: bytes, *, timeout: float) -> Answer:
        """Send one whole request and return its answer; ``method`` says whether it is safe to repeat.

        Raises:
            TimeoutError: no answer within ``timeout`` seconds, waiting for a connection included.
            NotConnected: nothing was sent.
            AnswerLost: the request may have been carried out.
        """
        async with asyncio.timeout(timeout), self._places:
            while True:
                connection = self._take_kept() or await self._take_turn() or await self._connect()
                try:
                    answer = await connection.send(request)
                except _Stale:
                    if method not in REPEATABLE:
                        raise
                    continue  # ends with a new connection, which is never stale
                except BaseException:
                    connection.close()
                    raise
                self._release(connection, answer)
                return answer

    def close(self) -> None:
        """Close all connections: those in use after their exchange."""
        self._closed = True
        while self._kept:
            self._kept.pop().close()

    def _take_kept(self) -> _Exchange | None:
        """The connection used last: others may then grow old and go."""
        oldest = time.monotonic() - IDLE_SECONDS
        while self._kept and self._kept[0].released_at < oldest:
            self._kept.popleft().close()
        while self._kept:
            connection = self._kept.pop()
            if connection.usable:
                return connection
        return None

    async def _take_turn(self) -> _Exchange | None:
        """The next connection that becomes free; None when it is time to open one."""
        if self._open < READILY_OPENED:
            return None
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[_Exchange | None] = loop.create_future()
        self._waiting.append((loop.time(), waiter))
        if self._timer is None:
            self._timer = loop.call_later(TURN_SECONDS, self._open_another)
        try:
            connection = await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled() and (unused := waiter.result()):
                self._keep(unused)
            raise
        return connection if connection is not None and connection.usable else None

    def _open_another(self) -> None:
        """Let who has waited longest open a connection, and everybody who has waited for too long."""
        self._timer = None
        loop = asyncio.get_running_loop()
        limit = TURN_SECONDS
        while self._waiting:
            since, waiter = self._waiting[0]
            wait = 0.0 if waiter.done() else since + limit - loop.time()
            if wait > 0:
                self._timer = loop.call_later(min(wait, TURN_SECONDS), self._open_another)
                return
            self._waiting.popleft()
            if _give(waiter, None):
                limit = LONGEST_TURN_SECONDS

    def _release(self, connection: _Exchange, answer: Answer) -> None:
        if not answer.keep_alive or self._closed or not connection.usable:
            connection.close()
        else:
            self._keep(connection)

    def _keep(self, connection: _Exchange) -> None:
        while self._waiting:
            if _give(self._waiting.popleft()[1], connection):
                return
        connection.released_at = time.monotonic()
        self._kept.append(connection)

    def _lost(self, connection: _Exchange) -> None:
        if connection in self._kept:
            self._kept.remove(connection)
        self._one_less()

    def _one_less(self) -> None:
        """A connection is gone: who waits for one may open another."""
        self._open -= 1
        while self._waiting:
            if _give(self._waiting.popleft()[1], None):
                return

    async def _connect(self) -> _Exchange:
        loop = asyncio.get_running_loop()
        connection = _Exchange(self._lost)
        address = (self._host, self._port)
        self._open += 1
        try:
            async with asyncio.timeout(self._connect_timeout):
                await loop.create_connection(
                    lambda: connection, *address, ssl=self._tls, server_hostname=self._server_hostname
                )
        except TimeoutError as error:
            self._not_connected(connection)
            raise NotConnected(f"no connection to {self._host}:{self._port} in time") from error
        except OSError as error:  # ssl.SSLError is one
            self._not_connected(connection)
            raise NotConnected(f"cannot connect to {self._host}:{self._port}: {error}") from error
        except BaseException:
            self._not_connected(connection)
            raise
        return connection

    def _not_connected(self, connection: _Exchange) -> None:
        if connection.usable:
            connection.close()
        else:
            self._one_less()


def _give(waiter: asyncio.Future[_Exchange | None], connection: _Exchange | None) -> bool:
    """Whether the waiter was still waiting."""
    if waiter.done():
        return False
    waiter.set_result(connection)
    return True
