"""Measured load of nodes, fetched from a metrics system as the policy's ``metrics`` section says (spec 04 section 6).

What was measured is handed to cycles as :mod:`stromboli.scheduler.core.loads` says. A node whose load cannot be
measured keeps the last value with its old time, so that whoever uses it can see how old it is.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import aiohttp
import orjson

from stromboli.api import durations, quantities
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import KubeError, NotFound
from stromboli.scheduler.core.loads import PERIOD, NodeLoad

log = logging.getLogger(__name__)

DEFAULT_INTERVAL_SECONDS = 30.0
ROUND_SECONDS = 60.0
MAXIMUM_ANSWER = 2**20
CONCURRENT_REQUESTS = 16


class LoadError(Exception):
    """The metrics system cannot be used or did not answer; the text is one line."""


class LoadSource(Protocol):
    """A metrics system."""

    async def measure(self, node: str) -> tuple[float, float]:
        """cpu and memory of one node in percent. Raises LoadError."""
        ...


class Loads:
    """Measures every node in every interval, for as long as the policy names a metrics system."""

    def __init__(
        self,
        client: Client,
        settings: Callable[[], Mapping[str, str]],
        nodes: Callable[[], Iterable[str]],
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.known: Mapping[str, NodeLoad] = {}
        self._client = client
        self._settings = settings
        self._nodes = nodes
        self._clock = clock

    async def run(self) -> None:
        """Measure until cancelled. The interval is read once, everything else anew for every round."""
        interval = interval_of(self._settings())
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ROUND_SECONDS)) as session:
            while True:
                await self._clock.sleep(interval)
                try:
                    await self.measure(session)
                except (LoadError, TimeoutError) as error:
                    log.error("node loads: %s", str(error) or f"no answer within {ROUND_SECONDS:g} s")

    async def measure(self, session: aiohttp.ClientSession) -> None:
        """One round over all nodes. Raises LoadError when the settings cannot be used."""
        source = source_of(self._settings(), session, self._client)
        if source is None:
            self.known = {}
            return
        nodes, limit = list(self._nodes()), asyncio.Semaphore(CONCURRENT_REQUESTS)
        async with asyncio.timeout(ROUND_SECONDS):
            measured = await asyncio.gather(*(self._measure(source, node, limit) for node in nodes))
        loads = zip(nodes, measured, strict=True)
        self.known = {node: load for node, load in loads if load is not None}

    async def _measure(self, source: LoadSource, node: str, limit: asyncio.Semaphore) -> NodeLoad | None:
        async with limit:
            try:
                cpu, memory = await source.measure(node)
            except LoadError as error:
                log.warning("load of node %s: %s", node, error)
                return self.known.get(node)
        return NodeLoad(self._clock.time(), {PERIOD: cpu}, {PERIOD: memory})


def interval_of(settings: Mapping[str, str]) -> float:
    """Seconds between two rounds; 30 unless a positive duration is set."""
    try:
        seconds = durations.parse(settings.get("interval") or "") / 1e9
    except ValueError:
        return DEFAULT_INTERVAL_SECONDS
    return seconds if seconds > 0 else DEFAULT_INTERVAL_SECONDS


def source_of(settings: Mapping[str, str], session: aiohttp.ClientSession, client: Client) -> LoadSource | None:
    """The metrics system of the settings, or None when there is none.

    Raises:
        LoadError: an unknown ``type``, or no ``address`` where one is needed.
    """
    match settings.get("type") or "":
        case "":
            return None
        case "prometheus":
            return Prometheus(session, _address(settings), _tls(settings))
        case "prometheus_adaptor":
            return CustomMetrics(client)
        case "elasticsearch":
            return Elasticsearch(session, _address(settings), settings)
        case other:
            raise LoadError(f'metrics.type "{other}" is not known: use prometheus, prometheus_adaptor or elasticsearch')


def _address(settings: Mapping[str, str]) -> str:
    address = settings.get("address") or ""
    if not address:
        raise LoadError("metrics address is empty")
    return address.rstrip("/")


def _tls(settings: Mapping[str, str]) -> ssl.SSLContext | bool:
    return settings.get("tls.insecureSkipVerify") != "true"


class Prometheus:
    """Two instant queries a node."""

    CPU = (
        "avg_over_time(clamp_min(100 - (avg by (instance) "
        '(rate(node_cpu_seconds_total{{mode="idle",instance="{node}"}}[5m])) * 100), 0)[10m:30s])'
    )
    MEMORY = (
        '100*avg_over_time(((1-node_memory_MemAvailable_bytes{{instance="{node}"}}'
        '/node_memory_MemTotal_bytes{{instance="{node}"}}))[10m:30s])'
    )

    def __init__(self, session: aiohttp.ClientSession, address: str, tls: ssl.SSLContext | bool) -> None:
        self._session, self._address, self._tls = session, address, tls

    async def measure(self, node: str) -> tuple[float, float]:
        """cpu and memory of one node in percent."""
        name = node.replace("\\", "\\\\").replace('"', '\\"')
        return await self._query(self.CPU.format(node=name)), await self._query(self.MEMORY.format(node=name))

    async def _query(self, query: str) -> float:
        try:
            async with self._session.get(
                f"{self._address}/api/v1/query", params={"query": query}, ssl=self._tls
            ) as answer:
                document = _document(await _body(answer))
            return float(document["data"]["result"][0]["value"][1])
        except (aiohttp.ClientError, KeyError, IndexError, TypeError, ValueError) as error:
            raise LoadError(f"no value from {self._address}: {error or type(error).__name__}") from error


class CustomMetrics:
    """The custom metrics API of the cluster; its values are fractions of 1."""

    VERSIONS = ("v1beta2", "v1beta1")

    def __init__(self, client: Client) -> None:
        self._client = client

    async def measure(self, node: str) -> tuple[float, float]:
        """cpu and memory of one node in percent."""
        return await self._get(node, "node_cpu_usage_avg"), await self._get(node, "node_memory_usage_avg")

    async def _get(self, node: str, metric: str) -> float:
        last: Exception | None = None
        for version in self.VERSIONS:
            path = f"/apis/custom.metrics.k8s.io/{version}/nodes/{node}/{metric}"
            try:
                document = _document(await self._client.request("GET", path))
                return float(quantities.parse(document["items"][0]["value"])) * 100
            except NotFound as error:
                last = error
            except (KubeError, KeyError, IndexError, TypeError, ValueError) as error:
                raise LoadError(f"{metric}: {error or type(error).__name__}") from error
        raise LoadError(f"{metric} is not served: {last}") from last


class Elasticsearch:
    """One search with two averages a node; values are fractions of 1."""

    def __init__(self, session: aiohttp.ClientSession, address: str, settings: Mapping[str, str]) -> None:
        self._session, self._tls = session, _tls(settings)
        self._url = f"{address}/{settings.get('elasticsearch.index') or 'metricbeat-*'}/_search"
        self._host = settings.get("elasticsearch.hostnameFieldName") or "host.hostname"
        user, password = settings.get("elasticsearch.username") or "", settings.get("elasticsearch.password") or ""
        credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {credentials}"} if user else {}

    async def measure(self, node: str) -> tuple[float, float]:
        """cpu and memory of one node in percent."""
        try:
            async with self._session.post(
                self._url, json=self.search(node), headers=self._headers, ssl=self._tls
            ) as answer:
                averages = _document(await _body(answer))["aggregations"]
            return float(averages["cpu"]["value"]) * 100, float(averages["mem"]["value"]) * 100
        except (aiohttp.ClientError, KeyError, TypeError, ValueError) as error:
            raise LoadError(f"no value from {self._url}: {error or type(error).__name__}") from error

    def search(self, node: str) -> dict[str, Any]:
        """The body of the search."""
        recent = {"range": {"@timestamp": {"gte": f"now-{PERIOD}", "lt": "now"}}}
        return {
            "size": 0,
            "query": {"bool": {"must": [recent, {"term": {self._host: node}}]}},
            "aggs": {
                "cpu": {"avg": {"field": "host.cpu.usage"}},
                "mem": {"avg": {"field": "system.memory.actual.used.pct"}},
            },
        }


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    if answer.status >= 300:
        raise ValueError(f"status {answer.status}")
    return await answer.content.read(MAXIMUM_ANSWER)


def _document(body: bytes) -> dict[str, Any]:
    document = orjson.loads(body)
    if not isinstance(document, dict):
        raise ValueError("the answer is not a JSON object")
    return document
