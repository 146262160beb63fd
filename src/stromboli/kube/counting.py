"""How many requests a client has made, by method and answer, under the name that dashboards know from client-go.

Spec 08 section 15 (``rest_client_requests_total``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily

NO_ANSWER = "<error>"
"""What stands for the code where there was no answer."""


class RequestCounts:
    """Requests by method and code; register it with a Prometheus registry to serve it."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, method: str, code: int | None) -> None:
        """One request was answered with ``code``, or not at all (``None``)."""
        self._counts[method, str(code) if code is not None else NO_ANSWER] += 1

    def collect(self) -> Iterator[CounterMetricFamily]:
        """For the registry."""
        family = CounterMetricFamily(
            "rest_client_requests", "Requests to the API server, by answer", labels=("code", "host", "method")
        )
        for (method, code), count in sorted(self._counts.items()):
            family.add_metric((code, self._host, method), count)
        yield family
