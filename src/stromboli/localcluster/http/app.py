"""The aiohttp application: authenticates, authorizes, and hands requests to documents or resources.

:func:`create_app` needs a registry only; without authenticator everybody is the server itself, without authorizer
everything is allowed. TLS, addresses and lifetime are the caller's.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import orjson
from aiohttp import web

from stromboli.localcluster import statuses
from stromboli.localcluster.auth.authorizing import require
from stromboli.localcluster.extending import SYSTEM, Attributes, Authenticator, Authorizer, User
from stromboli.localcluster.http import answers, bodies, paths, resources, streaming
from stromboli.localcluster.http.documents import HEALTH_PATHS, Documents
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.statuses import StatusError

log = logging.getLogger(__name__)

ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


class Api:
    """Everything below ``/``."""

    def __init__(
        self,
        registry: Registry,
        authenticator: Authenticator | None = None,
        authorizer: Authorizer | None = None,
        address: str = "",
    ) -> None:
        self._registry = registry
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._documents = Documents(registry, address)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request; every failure is answered with a Status."""
        try:
            return await self._serve(request)
        except StatusError as error:
            return _failure(request, error)
        except web.HTTPRequestEntityTooLarge:
            message = f"Request entity too large: limit is {bodies.LIMIT}"
            return _failure(request, StatusError(413, "RequestEntityTooLarge", message))
        except RecursionError:
            return _failure(request, statuses.bad_request("the object is nested too deeply"))
        except Exception as error:
            if isinstance(error, ConnectionError) and streaming.has_left(request):
                streaming.tell_left(request, error)
                return web.Response()  # for nobody
            log.exception("%s %s failed", request.method, request.path)
            return _failure(request, statuses.internal(f"{type(error).__name__}: {error}"))

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        target = paths.parse(request.path)
        user = await self._authenticate(request)
        if target is None:
            return await self._document(request, user)
        verb = resources.verb_of(request.method, target, watches=resources.is_watch(request))
        await self._authorize(user, resources.attributes_of(target, verb))
        return await resources.serve(request, self._registry, target, user, verb)

    async def _document(self, request: web.Request, user: User) -> web.StreamResponse:
        path = request.path
        if request.method not in ("GET", "HEAD"):
            raise statuses.method_not_allowed()
        if not path.startswith(HEALTH_PATHS):
            await self._authorize(user, Attributes(verb="get", path=path))
        document = self._documents.find(path, request.headers.get("Accept", ""), request.query)
        response = web.Response(body=document.body)
        response.headers["Content-Type"] = document.media_type
        if len(document.body) > 16 * 1024:
            response.enable_compression()
        return response

    async def _authenticate(self, request: web.Request) -> User:
        if self._authenticator is None:
            return SYSTEM
        user = await self._authenticator.authenticate(request.headers, _peer_certificate(request))
        if user is not None:
            return user
        if request.path.startswith(HEALTH_PATHS) and "Authorization" not in request.headers:
            return ANONYMOUS
        raise statuses.unauthorized()

    async def _authorize(self, user: User, attributes: Attributes) -> None:
        if self._authorizer is not None:
            await require(self._authorizer, user, attributes)


def _peer_certificate(request: web.Request) -> Mapping[str, Any] | None:
    found = request.get_extra_info("peercert")
    return found if isinstance(found, dict) and found else None


def _failure(request: web.Request, error: StatusError) -> web.Response:
    response = web.json_response(body=orjson.dumps(error.to_wire()), status=error.code)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    answers.add_warnings(request, response)
    return response


def create_app(
    registry: Registry,
    authenticator: Authenticator | None = None,
    authorizer: Authorizer | None = None,
    address: str = "",
) -> web.Application:
    """The application; ``address`` (``host:port``) is what discovery tells clients."""
    app = web.Application(client_max_size=bodies.LIMIT)
    app.router.add_route("*", "/{path:.*}", Api(registry, authenticator, authorizer, address).handle)
    return app
