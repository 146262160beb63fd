"""What every answer says to browsers, and who is not answered.

The page shows names and messages that any user of the cluster may have chosen, so nothing but our own files may run in
it. It has no log-in: it relies on being reachable only by those who may read it (loopback, ``kubectl port-forward``, an
authenticating proxy). A page elsewhere must not read it through the browser of such a person either, so requests are
refused whose Host is a name that is not known here: an attacker's name may lead to loopback, an address cannot be his.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.typedefs import Middleware

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-cache",
    "Server": "stromboli-dashboard",
}
ALWAYS_ALLOWED: Final = frozenset({"localhost"})


async def add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Say it with every answer, errors included."""
    response.headers.update(HEADERS)


def known_hosts(allowed: Collection[str]) -> Middleware:
    """Refuses requests for other hosts than addresses, ``localhost`` and the ``allowed`` names with 421."""
    names = ALWAYS_ALLOWED | {name.lower() for name in allowed}

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = host_of(request.headers.get("Host", ""))
        if host in names or is_address(host):
            return await handler(request)
        text = f"421: {host[:100]!r} is not a name of this page; --allowed-hosts adds names\n"
        return web.Response(status=421, text=text)

    return check


def host_of(header: str) -> str:
    """The host in a Host header, without port and brackets, in lower case."""
    host = header.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def is_address(host: str) -> bool:
    """Whether the host is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
