"""Node loads from three metrics systems: what is asked, what is understood, what happens when nobody answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from stromboli.kube.client import Client
from stromboli.scheduler.core.loads import NodeLoad
from stromboli.scheduler.node_loads import LoadError, Loads, interval_of, source_of
from stromboli.testing.clocks import FakeClock


class Backend:
    """Prometheus, Elasticsearch and the custom metrics API at once."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.values: dict[str, float] = {}
        """Node to a number; cpu is this, memory twice this."""
        self.broken: set[str] = set()
        self.versions = {"v1beta2", "v1beta1"}

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/api/v1/query", self.query)
        application.router.add_post("/{index}/_search", self.search)
        application.router.add_get("/apis/custom.metrics.k8s.io/{version}/nodes/{node}/{metric}", self.custom)
        return application

    def node_in(self, text: str) -> str:
        return next(node for node in self.values if node in text)

    async def query(self, request: web.Request) -> web.Response:
        query = request.query["query"]
        self.asked.append(query)
        node = self.node_in(query)
        if node in self.broken:
            return web.json_response({"status": "success", "data": {"resultType": "vector", "result": []}})
        value = self.values[node] * (2 if "memory" in query else 1)
        result = [{"metric": {}, "value": [1, str(value)]}]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})

    async def search(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append((request.path, request.headers.get("Authorization"), body))
        value = self.values[self.node_in(str(body))] / 100
        averages = {"cpu": {"value": value}, "mem": {"value": 2 * value}}
        return web.json_response({"aggregations": averages})

    async def custom(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if request.match_info["version"] not in self.versions:
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        value = self.values[request.match_info["node"]] * (2 if "memory" in request.match_info["metric"] else 1)
        return web.json_response({"items": [{"value": f"{int(value * 10)}m"}]})


@pytest.fixture
async def backend() -> AsyncIterator[tuple[Backend, str, Client]]:
    backend = Backend()
    async with TestServer(backend.application()) as server:
        address = str(server.make_url("")).rstrip("/")
        async with await Client.connect(master=address, qps=0) as client:
            yield backend, address, client


async def measured(loads: Loads) -> dict[str, NodeLoad]:
    async with aiohttp.ClientSession() as session:
        await loads.measure(session)
    return dict(loads.known)


def loads(client: Client, nodes: list[str], clock: FakeClock, **settings: str) -> Loads:
    named = {key.replace("__", "."): value for key, value in settings.items()}
    return Loads(client, lambda: named, lambda: nodes, clock=clock)


@pytest.mark.parametrize("kind", ["prometheus", "prometheus_adaptor", "elasticsearch"])
async def test_every_system_gives_percent_under_the_fixed_period(
    backend: tuple[Backend, str, Client], kind: str
) -> None:
    system, address, client = backend
    system.values = {"node-a": 20.0, "node-b": 30.0}
    clock = FakeClock()
    known = await measured(loads(client, ["node-a", "node-b"], clock, type=kind, address=address))
    assert set(known) == {"node-a", "node-b"}
    assert known["node-b"].cpu == {"10m": pytest.approx(30.0)}
    assert known["node-b"].memory == {"10m": pytest.approx(60.0)}
    assert known["node-b"].time == clock.time()


async def test_prometheus_is_asked_the_documented_questions(backend: tuple[Backend, str, Client]) -> None:
    system, address, client = backend
    system.values = {"n1": 1.0}
    await measured(loads(client, ["n1"], FakeClock(), type="prometheus", address=address))
    assert sorted(system.asked) == [
        '100*avg_over_time(((1-node_memory_MemAvailable_bytes{instance="n1"}/node_memory_MemTotal_bytes{instance="n1"}))'
        "[10m:30s])",
        "avg_over_time(clamp_min(100 - (avg by (instance) "
        '(rate(node_cpu_seconds_total{mode="idle",instance="n1"}[5m])) * 100), 0)[10m:30s])',
    ]


async def test_elasticsearch_is_asked_with_index_host_field_and_password(backend: tuple[Backend, str, Client]) -> None:
    system, address, client = backend
    system.values = {"n1": 1.0}
    settings = {
        "elasticsearch__index": "beats",
        "elasticsearch__username": "u",
        "elasticsearch__password": "p",
        "elasticsearch__hostnameFieldName": "agent.name",
    }
    await measured(loads(client, ["n1"], FakeClock(), type="elasticsearch", address=address, **settings))
    ((path, authorization, body),) = system.asked
    assert path == "/beats/_search"
    assert authorization == "Basic dTpw"
    assert body["query"]["bool"]["must"][1] == {"term": {"agent.name": "n1"}}
    assert body["size"] == 0


async def test_older_custom_metrics_api_is_understood(backend: tuple[Backend, str, Client]) -> None:
    system, _, client = backend
    system.values, system.versions = {"n1": 40.0}, {"v1beta1"}
    known = await measured(loads(client, ["n1"], FakeClock(), type="prometheus_adaptor"))
    assert known["n1"].cpu == {"10m": pytest.approx(40.0)}


async def test_node_that_cannot_be_measured_keeps_its_old_value_and_time(backend: tuple[Backend, str, Client]) -> None:
    system, address, client = backend
    system.values = {"n1": 10.0, "n2": 20.0}
    clock = FakeClock()
    measuring = loads(client, ["n1", "n2"], clock, type="prometheus", address=address)
    first = await measured(measuring)
    system.values["n1"], system.broken = 99.0, {"n1"}
    clock.jump(30)
    second = await measured(measuring)
    assert second["n1"] == first["n1"]
    assert second["n2"].time == first["n2"].time + 30


async def test_node_that_never_answered_is_unknown(backend: tuple[Backend, str, Client]) -> None:
    system, address, client = backend
    system.values, system.broken = {"n1": 10.0}, {"n1"}
    assert await measured(loads(client, ["n1"], FakeClock(), type="prometheus", address=address)) == {}


UNUSABLE = {
    "unknown type": ({"type": "graphite"}, 'metrics.type "graphite" is not known'),
    "prometheus without address": ({"type": "prometheus"}, "metrics address is empty"),
    "elasticsearch without address": ({"type": "elasticsearch"}, "metrics address is empty"),
}


@pytest.mark.parametrize(("settings", "want"), UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_unusable_settings_are_one_line(
    backend: tuple[Backend, str, Client], settings: dict[str, str], want: str
) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(LoadError, match=want):
            source_of(settings, session, backend[2])


async def test_without_a_type_nothing_is_collected(backend: tuple[Backend, str, Client]) -> None:
    assert await measured(loads(backend[2], ["n1"], FakeClock())) == {}


INTERVALS = {
    "absent": (None, 30),
    "set": ("2m", 120),
    "zero": ("0s", 30),
    "negative": ("-1s", 30),
    "word": ("soon", 30),
}


@pytest.mark.parametrize(("written", "want"), INTERVALS.values(), ids=INTERVALS.keys())
def test_interval(written: str | None, want: float) -> None:
    assert interval_of({} if written is None else {"interval": written}) == want
