"""Prometheus series with exactly the specified names, and the ``/metrics`` endpoint.

One :class:`Metrics` per process: a registry of its own (so tests never meet each other), the prefix ``volcano_``
for the specified series, and removal of an object's series when the object goes (pain P59). Sources: spec 08
section 15, ADR 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import prometheus_client
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PREFIX = "volcano_"


def geometric(first: float, last: float, count: int) -> tuple[float, ...]:
    """``count`` histogram bounds in geometric steps from ``first`` to ``last``, both included."""
    ratio = (last / first) ** (1 / (count - 1))
    return (*(first * ratio**step for step in range(count - 1)), last)


class PlainCounter:
    """A counter whose contract name does not end in ``_total``, which the library would otherwise append."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge

    def labels(self, *values: str) -> PlainCounter:
        """The child for these label values."""
        return PlainCounter(self._gauge.labels(*values))

    def inc(self, amount: float = 1) -> None:
        """Add ``amount``, which must not be negative."""
        if amount < 0:
            raise ValueError("a counter only goes up")
        self._gauge.inc(amount)

    def remove(self, *values: str) -> None:
        """Forget the child for these label values."""
        self._gauge.remove(*values)


class Metrics:
    """Declares and serves the series of one process."""

    def __init__(self, prefix: str = PREFIX, *, process_series: bool = False) -> None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry(auto_describe=True)
        self._prefix = prefix
        if process_series:
            ProcessCollector(registry=self.registry)
            PlatformCollector(registry=self.registry)
            GCCollector(registry=self.registry)

    def gauge(self, name: str, help_text: str, labels: Sequence[str] = ()) -> Gauge:
        """Declare a gauge."""
        return Gauge(self._prefix + name, help_text, labels, registry=self.registry)

    def counter(self, name: str, help_text: str, labels: Sequence[str] = ()) -> Counter | PlainCounter:
        """Declare a counter; the name is used as it is, with or without ``_total``."""
        if name.endswith("_total"):
            return Counter(self._prefix + name, help_text, labels, registry=self.registry)
        return PlainCounter(self.gauge(name, help_text, labels))

    def histogram(
        self, name: str, help_text: str, labels: Sequence[str] = (), *, buckets: Sequence[float]
    ) -> Histogram:
        """Declare a histogram with these upper bounds (``+Inf`` is implied)."""
        return Histogram(self._prefix + name, help_text, labels, registry=self.registry, buckets=buckets)

    def render(self) -> bytes:
        """The registry in Prometheus' text format."""
        return generate_latest(self.registry)

    def routes(self) -> list[web.RouteDef]:
        """The ``/metrics`` route."""
        return [web.get("/metrics", self._answer)]

    async def _answer(self, _request: web.Request) -> web.Response:
        return web.Response(body=self.render(), headers={"Content-Type": prometheus_client.CONTENT_TYPE_LATEST})


def forget(metric: Gauge | Counter | PlainCounter | Histogram, *values: str) -> None:
    """Remove a child series if it exists."""
    remove: Callable[..., None] = metric.remove
    try:
        remove(*values)
    except KeyError:
        pass
