"""The HTTP side of admission: requests in, answers out, nothing decided here (spec 07 section 3)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from stromboli.telemetry.metrics import Metrics
from stromboli.webhooks import reviews
from stromboli.webhooks.admission_configuration import ResourceGroup
from stromboli.webhooks.context import Cluster, Context, Operation, Settings
from stromboli.webhooks.endpoints import Endpoint
from stromboli.webhooks.podtemplates.asking import AskedTemplates
from stromboli.webhooks.shapes import JsonObject, Malformed

log = logging.getLogger(__name__)

JSON: Final = "application/json"
IN_FLIGHT: Final = web.AppKey("IN_FLIGHT", list[str])
"""Paths of reviews that are being answered. Those that the end of the process interrupts stay in the list."""
READ_SECONDS: Final = 30.0
"""For a request's body to arrive; the API server gives up after ten seconds anyway."""
_OPERATIONS: Final = frozenset(operation.value for operation in Operation)
_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0)


class ReviewMetrics:
    """How many reviews of what kind, and how long they took."""

    def __init__(self, metrics: Metrics) -> None:
        self._count = metrics.counter(
            "admission_reviews_total",
            "Admission reviews by path, operation and verdict",
            ("path", "operation", "verdict"),
        )
        self._seconds = metrics.histogram(
            "admission_review_duration_seconds", "Time to answer an admission review", ("path",), buckets=_BUCKETS
        )

    def reviewed(self, path: str, operation: str, verdict: str, seconds: float) -> None:
        """Count one review. ``operation`` comes from the caller, so only the known ones become labels."""
        known = operation if operation in _OPERATIONS else "other"
        self._count.labels(path, known, verdict).inc()
        self._seconds.labels(path).observe(seconds)


@dataclass(frozen=True, slots=True)
class Admission:
    """What every review is decided with."""

    settings: Settings
    cluster: Cluster
    templates: AskedTemplates
    groups: Callable[[], Sequence[ResourceGroup] | None]
    metrics: ReviewMetrics

    async def review(self, endpoint: Endpoint, body: bytes) -> bytes:
        """The answer to the body of a review. Raises ``BadReview`` for a body that is none."""
        started = time.perf_counter()
        try:
            request = reviews.parse(body)
            await self._prepare(endpoint, request)
            verdict = reviews.decide(endpoint, request, self._context(request))
        except reviews.UnreadableObject as unreadable:
            request, verdict = unreadable.request, unreadable.verdict
        allowed = "allowed" if verdict.allowed else "denied"
        self.metrics.reviewed(endpoint.path, request.operation, allowed, time.perf_counter() - started)
        if not verdict.allowed:
            log.debug("%s denied: %s", _described(endpoint, request), verdict.message)
        return reviews.answer(request, verdict)

    async def _prepare(self, endpoint: Endpoint, request: reviews.Request) -> None:
        """Have the API server look at what it judges better than we do."""
        if endpoint.templates is None or request.operation != Operation.CREATE or not request.object:
            return
        try:
            templates: Sequence[JsonObject] = endpoint.templates(request.object)
        except Malformed:
            return  # The decision will say so.
        await self.templates.ask(request.namespace, templates)

    def _context(self, request: reviews.Request) -> Context:
        return Context(
            operation=request.operation,
            name=request.name,
            namespace=request.namespace,
            settings=self.settings,
            cluster=self.cluster,
            templates=self.templates,
            groups=self.groups(),
        )


def _described(endpoint: Endpoint, request: reviews.Request) -> str:
    return f"{endpoint.path} {request.operation} {request.namespace}/{request.name}"


def application(admission: Admission, endpoints: Sequence[Endpoint]) -> web.Application:
    """An application that answers reviews on the endpoints' paths, whatever the HTTP method, and 404 elsewhere."""
    # Versions of the library differ in whether a body of exactly its limit is too long; ours is checked below.
    app = web.Application(client_max_size=reviews.MAX_BYTES + 1, middlewares=[_plain_errors])
    app[IN_FLIGHT] = []
    for endpoint in endpoints:
        app.router.add_route("*", endpoint.path, _handler(admission, endpoint))
    return app


def _handler(admission: Admission, endpoint: Endpoint) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        in_flight = request.app[IN_FLIGHT]
        in_flight.append(endpoint.path)
        try:
            response = await answer(request)
        except Exception:
            in_flight.remove(endpoint.path)
            raise
        in_flight.remove(endpoint.path)
        return response

    async def answer(request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(READ_SECONDS):
                body = await request.read()
        except TimeoutError:
            return web.Response(status=408, text="the request body did not arrive in time")
        if len(body) > reviews.MAX_BYTES:
            return _too_large()
        # Size first, then type: the order clients have always seen.
        if request.headers.get("Content-Type") != JSON:
            return web.Response(status=415, text=f"expected Content-Type {JSON}")
        try:
            reviewed = await admission.review(endpoint, body)
        except reviews.BadReview as error:
            return web.Response(status=400, text=f"not an admission review: {reviews.shortened(str(error))}")
        return web.Response(body=reviewed, content_type=JSON)

    return handle


def _too_large() -> web.Response:
    return web.Response(status=413, text="request body too large")


@web.middleware
async def _plain_errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge:
        return _too_large()
    except web.HTTPNotFound:
        return web.Response(status=404, text="404 page not found")
    except web.HTTPException:
        raise
    except Exception:
        # One review that runs into a defect of ours must not take the connection, and others on it, along.
        log.exception("%s: review failed", request.path)
        return web.Response(status=500, text="the review failed; see the log of the admission server")
