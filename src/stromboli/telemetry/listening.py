"""Small HTTP servers on Go-style addresses, with one clear line when a port cannot be had."""

from __future__ import annotations

import errno
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

GRACEFUL_STOP_SECONDS = 30.0


class ListenError(Exception):
    """An address could not be parsed or listened on; the text is one line for the user."""


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port; an empty host means every interface, port 0 any free port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read ``host:port``, ``:port`` or ``[v6]:port``.

        Raises:
            ListenError: naming the text and the accepted form.
        """
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65535:
            raise ListenError(f'invalid address "{text}": expected host:port or :port with a port from 0 to 65535')
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@asynccontextmanager
async def listening(
    application: web.Application,
    address: Address,
    *,
    tls: ssl.SSLContext | None = None,
    stop_seconds: float = GRACEFUL_STOP_SECONDS,
) -> AsyncIterator[Address]:
    """Serve ``application`` while the block runs; yields the address really bound (its port is never 0).

    At its end requests in flight get ``stop_seconds`` to finish.

    Raises:
        ListenError: the port is in use or not permitted.
    """
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=stop_seconds)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address.host or None, address.port, ssl_context=tls)
        try:
            await site.start()
        except OSError as error:
            raise ListenError(_explain(address, error)) from error
        port = runner.addresses[0][1] if runner.addresses else address.port
        yield Address(address.host, int(port))
    finally:
        await runner.cleanup()


def _explain(address: Address, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"cannot listen on {address}: the port is in use; stop the other process or choose another address"
    if error.errno == errno.EACCES:
        return f"cannot listen on {address}: permission denied; choose a port above 1023"
    return f"cannot listen on {address}: {error.strerror or error}"
