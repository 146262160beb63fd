"""Answers that are written piece by piece, to clients that may hang up at any moment. That is no error: it is what
``kubectl get --watch`` and ``kubectl logs --follow`` do when they are interrupted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

log = logging.getLogger(__name__)


def has_left(request: web.Request) -> bool:
    """Whether the client of a request has closed the connection, so that nothing can be written any more."""
    return request.transport is None or request.transport.is_closing()


async def written(
    request: web.Request, response: web.StreamResponse, write: Callable[[], Awaitable[None]]
) -> web.StreamResponse:
    """The response, begun, written by ``write`` and ended; cut short without complaint when the client leaves."""
    try:
        await response.prepare(request)
        await write()
        await response.write_eof()
    except (ConnectionError, asyncio.CancelledError) as error:
        if not has_left(request):
            raise
        tell_left(request, error)
    return response


def tell_left(request: web.Request, error: BaseException) -> None:
    """Say in the debug log that a client has left early."""
    log.debug("%s %s: the client has left: %s", request.method, request.path, str(error) or type(error).__name__)
