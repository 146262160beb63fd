"""The series of the dashboard (Stromboli's own: ``stromboli_dashboard_``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.typedefs import Middleware

from stromboli.dashboard.following import Follower
from stromboli.telemetry.metrics import Metrics, geometric

PREFIX: Final = "stromboli_dashboard_"
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class DashboardMetrics:
    """Requests, readers, what a section costs, and whether the API server answers."""

    def __init__(self, metrics: Metrics) -> None:
        self.streams = metrics.gauge("streams", "Readers of /api/changes")
        self._requests = metrics.counter("requests_total", "Answered requests", ["path", "code"])
        self._seconds = metrics.histogram(
            "section_seconds", "Time to make a section of the view", ["section"], buckets=geometric(0.001, 4.096, 13)
        )
        self._connected = metrics.gauge("connected", "1 while the API server answers, else 0")
        self._objects = metrics.gauge("objects", "Objects known, by resource", ["resource"])

    def follow(self, follower: Follower) -> None:
        """Show how it stands with this follower whenever somebody asks."""
        self._connected.set_function(lambda: float(not follower.connection().since))
        for informer in follower.informers:
            self._objects.labels(informer.kind.resource).set_function(partial(len, informer.store))

    def took(self, section: str, seconds: float) -> None:
        """Count the making of a section."""
        self._seconds.labels(section).observe(seconds)

    def answered(self, path: str, code: int) -> None:
        """Count a request. ``path`` is one of the routes, or ``other``."""
        self._requests.labels(path, str(code)).inc()


def measured(metrics: DashboardMetrics) -> Middleware:
    """Counts every request under its route, so that no client can make series of its own."""

    @web.middleware
    async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        path = resource.canonical if resource is not None else "other"
        try:
            response = await handler(request)
        except web.HTTPException as error:
            metrics.answered(path, error.status)
            raise
        metrics.answered(path, response.status)
        return response

    return count
