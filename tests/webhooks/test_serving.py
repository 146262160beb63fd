"""The server over real TLS (spec 07 sections 2.1 and 3)."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import aiohttp
import orjson
import pytest

from stromboli.telemetry.listening import Address, listening
from stromboli.telemetry.metrics import Metrics
from stromboli.testing.apiserver import FakeApiServer
from stromboli.webhooks import certificates, reviews
from stromboli.webhooks.certificates import Bundle
from stromboli.webhooks.context import Context, Settings
from stromboli.webhooks.endpoints import BY_PATH, ENDPOINTS, Endpoint
from stromboli.webhooks.podtemplates import LocalTemplates
from stromboli.webhooks.podtemplates.asking import AskedTemplates
from stromboli.webhooks.serving import Admission, ReviewMetrics, application
from stromboli.webhooks.shapes import JsonObject
from stromboli.webhooks.tls import ReloadableTls
from tests.webhooks.building import cluster, job, queue, request, review

HOSTS = ["127.0.0.1"]
JSON = {"Content-Type": "application/json"}
VALID = review(request("/jobs/validate", job()))


@dataclass
class Running:
    """A server and how to reach it."""

    api: FakeApiServer
    url: str
    tls: ReloadableTls
    session: aiohttp.ClientSession
    metrics: Metrics

    async def post(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> tuple[int, str, bytes]:
        """Status, content type and body."""
        headers = JSON if headers is None else headers
        async with self.session.post(
            self.url + path, data=io.BytesIO(body), headers=headers, ssl=self.trust()
        ) as response:
            return response.status, response.content_type, await response.read()

    def trust(self) -> ssl.SSLContext:
        """What a client trusts that has just read the webhook configuration."""
        return ssl.create_default_context(cadata=self.tls.bundle.authorities)


@asynccontextmanager
async def running(endpoints: tuple[Endpoint, ...] = ENDPOINTS) -> AsyncIterator[Running]:
    metrics = Metrics()
    tls = ReloadableTls(certificates.create(HOSTS, certificates.utc_now()))
    async with FakeApiServer() as api, await api.client() as client, aiohttp.ClientSession() as session:
        admission = Admission(
            settings=Settings(),
            cluster=cluster(queue("parent"), queue("leaf", parent="parent")),
            templates=AskedTemplates(client, LocalTemplates()),
            groups=lambda: None,
            metrics=ReviewMetrics(metrics),
        )
        app = application(admission, endpoints)
        async with listening(app, Address("127.0.0.1", 0), tls=tls.context) as address:
            yield Running(api, f"https://{address}", tls, session, metrics)


async def test_a_review_is_answered_as_json() -> None:
    async with running() as server:
        status, content_type, body = await server.post("/jobs/validate?timeout=10s", VALID)
        assert (status, content_type) == (200, "application/json")
        assert orjson.loads(body)["response"] == {"uid": "9f4c", "allowed": True}


async def test_a_refusal_is_a_good_answer_too() -> None:
    async with running() as server:
        status, _, body = await server.post("/jobs/validate", review(request("/jobs/validate", job(queue="parent"))))
        assert status == 200
        assert "can only submit job to leaf queue" in orjson.loads(body)["response"]["status"]["message"]


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/validate/", "/healthz", "/nope"])
async def test_other_paths_do_not_exist(path: str) -> None:
    async with running() as server:
        assert await server.post(path, VALID) == (404, "text/plain", b"404 page not found")


async def test_only_enabled_paths_are_served() -> None:
    async with running((BY_PATH["/jobs/validate"],)) as server:
        assert (await server.post("/queues/validate", VALID))[0] == 404


async def test_a_body_over_the_limit_is_refused_before_its_type_is_looked_at() -> None:
    async with running() as server:
        answer = await server.post("/jobs/validate", b" " * (reviews.MAX_BYTES + 1), {"Content-Type": "text/plain"})
        assert answer == (413, "text/plain", b"request body too large")


async def test_a_body_of_just_the_limit_is_read() -> None:
    async with running() as server:
        body = VALID + b" " * (reviews.MAX_BYTES - len(VALID))
        assert (await server.post("/jobs/validate", body))[0] == 200


@pytest.mark.parametrize("content_type", ["text/plain", "application/json; charset=utf-8", "application/yaml"])
async def test_another_content_type_is_refused(content_type: str) -> None:
    async with running() as server:
        assert (await server.post("/jobs/validate", VALID, {"Content-Type": content_type}))[0] == 415


async def test_what_is_no_review_is_refused_and_the_connection_lives_on() -> None:
    async with running() as server:
        for body in (b"", b"{", b"[]", b'{"kind": "Pod"}'):
            status, _, text = await server.post("/jobs/validate", body)
            assert status == 400
            assert text.startswith(b"not an admission review: ")
        assert (await server.post("/jobs/validate", VALID))[0] == 200


async def test_a_defect_of_ours_is_one_failed_review() -> None:
    def broken(obj: JsonObject | None, old: JsonObject | None, context: Context, /) -> Any:
        raise RuntimeError("a defect")

    endpoint = replace(BY_PATH["/jobs/validate"], validate=broken)
    async with running((endpoint, BY_PATH["/queues/validate"])) as server:
        assert (await server.post("/jobs/validate", VALID))[0] == 500
        assert (await server.post("/queues/validate", review(request("/queues/validate", queue("q")))))[0] == 200


async def test_reviews_are_counted_with_bounded_labels() -> None:
    async with running() as server:
        await server.post("/jobs/validate", VALID)
        for operation in ("WEIRD", "STRANGE"):
            await server.post("/jobs/validate", review(request("/jobs/validate", job(), operation=operation)))
        text = server.metrics.render().decode()
        count = 'volcano_admission_reviews_total{operation="%s",path="/jobs/validate",verdict="%s"} %s'
        assert count % ("CREATE", "allowed", "1.0") in text
        assert count % ("other", "denied", "2.0") in text


async def test_an_api_server_that_cannot_judge_leaves_the_local_rules() -> None:
    async with running() as server:
        server.api.faults.fail(403, verb="create", times=None)
        _, _, answer = await server.post("/jobs/validate", VALID)
        assert orjson.loads(answer)["response"]["allowed"]


async def test_old_tls_is_not_spoken() -> None:
    async with running() as server:
        context = server.trust()
        with pytest.warns(DeprecationWarning):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(aiohttp.ClientError):
            await server.session.post(server.url + "/jobs/validate", data=VALID, headers=JSON, ssl=context)


def generations() -> list[Bundle]:
    """An old bundle and what becomes of it, step by step: a new authority, its first certificate, and others."""
    now = certificates.utc_now()
    old = certificates.create(HOSTS, now - timedelta(days=2500))
    bundles = [certificates.renewed(old, HOSTS, now - timedelta(days=200), old.authorities)]
    for number in range(6):
        more = [f"name-{step}" for step in range(2, number + 1)]
        bundles.append(certificates.renewed(bundles[-1], [*HOSTS, *more], now, bundles[-1].authorities))
    assert len({bundle.certificate for bundle in bundles}) == 6
    assert len({bundle.authorities for bundle in bundles}) == 2
    return bundles


async def test_certificates_change_under_load_without_a_refused_review() -> None:
    first, *others = generations()
    async with running() as server:
        server.tls.load(first)
        told, done, answered = [first.authorities], asyncio.Event(), [0] * 4
        progress = asyncio.Event()

        async def ask(number: int) -> None:
            """A new connection each time, with the trust of the latest webhook configuration."""
            while not done.is_set():
                trust = ssl.create_default_context(cadata=told[0])
                connector = aiohttp.TCPConnector(ssl=trust, force_close=True)
                async with (
                    aiohttp.ClientSession(connector=connector) as session,
                    session.post(server.url + "/jobs/validate", data=VALID, headers=JSON) as response,
                ):
                    assert response.status == 200
                answered[number] += 1
                progress.set()
                progress.clear()

        async def everybody_asked_twice() -> None:
            before = list(answered)
            while any(now < then + 2 for now, then in zip(answered, before, strict=True)):
                await progress.wait()

        async def renew() -> None:
            for bundle in others:
                server.tls.load(bundle)
                await everybody_asked_twice()
                told[0] = bundle.authorities  # The API server hears of it only now.
                await everybody_asked_twice()
            done.set()

        async with asyncio.TaskGroup() as group:
            for number in range(len(answered)):
                group.create_task(ask(number))
            group.create_task(renew())


async def test_a_replaced_certificate_is_gone_for_every_new_connection() -> None:
    async with running() as server:
        before = server.trust()
        server.tls.load(certificates.create(HOSTS, certificates.utc_now()))
        assert (await server.post("/jobs/validate", VALID))[0] == 200
        connector = aiohttp.TCPConnector(ssl=before, force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await session.post(server.url + "/jobs/validate", data=VALID, headers=JSON)
