"""The process from start to stop, against an API server that is a fake."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from stromboli.api import kinds
from stromboli.process import flags
from stromboli.process.ports import free_port
from stromboli.process.running import StartupError
from stromboli.telemetry.listening import ListenError
from stromboli.testing.apiserver import FakeApiServer
from stromboli.webhooks.endpoints import BY_PATH
from stromboli.webhooks.options import Options
from stromboli.webhooks.processing import PROGRAM, serve
from tests.webhooks.building import eventually, job, queue, request, review


def options(api: FakeApiServer, port: int, *more: str) -> Options:
    arguments = [
        f"--master={api.url}",
        "--listen-address=127.0.0.1",
        f"--port={port}",
        f"--webhook-url=https://127.0.0.1:{port}",
        *more,
    ]
    return flags.parse(Options, arguments, program=PROGRAM)


@dataclass
class Running:
    api: FakeApiServer
    session: aiohttp.ClientSession
    port: int
    health: int
    metrics: int
    task: asyncio.Task[None]

    def trust(self) -> ssl.SSLContext:
        """What the API server knows of us."""
        obj = self.api.get(kinds.VALIDATING_WEBHOOKS, BY_PATH["/jobs/validate"].configuration)
        authorities = base64.b64decode(obj["webhooks"][0]["clientConfig"]["caBundle"]).decode()
        return ssl.create_default_context(cadata=authorities)

    async def review(self, path: str, obj: Any) -> dict[str, Any]:
        """``response`` to a review of a new object."""
        url, headers = f"https://127.0.0.1:{self.port}{path}", {"Content-Type": "application/json"}
        async with self.session.post(url, data=review(request(path, obj)), headers=headers, ssl=self.trust()) as answer:
            response: dict[str, Any] = orjson.loads(await answer.read())["response"]
            return response

    async def allowed(self, path: str, obj: Any) -> bool:
        """Whether a new object is accepted."""
        return bool((await self.review(path, obj))["allowed"])

    async def patch(self, path: str, obj: Any) -> list[dict[str, Any]]:
        """The patch for a new object; empty for none."""
        patch = (await self.review(path, obj)).get("patch", "W10=")
        operations: list[dict[str, Any]] = orjson.loads(base64.b64decode(patch))
        return operations

    async def templates_asked(self) -> int:
        """How many pod templates the API server has been asked about."""
        return self.api.count("create", kinds.POD_TEMPLATES)

    async def ready(self) -> bool:
        """Whether ``/readyz`` says so. Raises what ended the server."""
        if self.task.done():
            self.task.result()
        try:
            return (await self.get(f"https://127.0.0.1:{self.health}/readyz", tls=False))[0] == 200
        except aiohttp.ClientError:
            return False

    async def get(self, url: str, *, tls: bool = True) -> tuple[int, str]:
        async with self.session.get(url, ssl=self.trust() if tls else False) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def running(*more: str) -> AsyncIterator[Running]:
    port, health, metrics = free_port(), free_port(), free_port()
    async with FakeApiServer() as api, aiohttp.ClientSession() as session:
        api.put(kinds.QUEUES, {**queue("default")})
        flags_of = (
            "--enable-healthz",
            f"--healthz-address=127.0.0.1:{health}",
            "--enable-metrics",
            f"--metrics-address=127.0.0.1:{metrics}",
            *more,
        )
        task = asyncio.create_task(serve(options(api, port, *flags_of)))
        server = Running(api, session, port, health, metrics, task)
        try:
            await eventually(server.ready)
            yield server
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_ready_server_is_registered_and_answers() -> None:
    async with running() as server:
        assert (await server.review("/jobs/validate", job()))["allowed"]
        assert "patch" in await server.review("/jobs/mutate", job())
        registered = server.api.objects(kinds.VALIDATING_WEBHOOKS) + server.api.objects(kinds.MUTATING_WEBHOOKS)
        assert len(registered) == 7


async def test_queues_are_known_as_soon_as_the_watch_tells() -> None:
    async with running() as server:
        assert not (await server.review("/jobs/validate", job(queue="new")))["allowed"]
        server.api.put(kinds.QUEUES, queue("new"))
        await eventually(lambda: server.allowed("/jobs/validate", job(queue="new")))


async def test_namespaces_are_known_where_an_endpoint_needs_them() -> None:
    annotations = {"scheduling.volcano.sh/queue-name": "theirs"}
    async with running() as server:
        server.api.put(kinds.NAMESPACES, {"metadata": {"name": "team", "annotations": annotations}})
        group = {"metadata": {"name": "g"}, "spec": {"queue": "default"}}
        assert await eventually(lambda: server.patch("/podgroups/mutate", group)) == [
            {"op": "replace", "path": "/spec/queue", "value": "theirs"}
        ]


async def test_health_is_served_over_the_same_tls_and_metrics_plainly() -> None:
    async with running() as server:
        await server.review("/jobs/validate", job())
        assert await server.get(f"https://127.0.0.1:{server.health}/healthz") == (200, "ok")
        status, text = await server.get(f"http://127.0.0.1:{server.metrics}/metrics", tls=False)
        assert status == 200
        assert "volcano_admission_reviews_total" in text


async def test_the_admission_configuration_is_taken_up_while_running(tmp_path: Path) -> None:
    path = tmp_path / "admission.conf"
    async with running(f"--admission-conf={path}") as server:
        pod = {"metadata": {"name": "p"}, "spec": {}}
        assert "patch" not in await server.review("/pods/mutate", pod)
        path.write_text("resourceGroups: [{object: {key: namespace, value: [team]}, schedulerName: volcano}]")
        (operation,) = await eventually(lambda: server.patch("/pods/mutate", pod))
        assert operation["value"] == "volcano"


async def test_certificates_survive_a_restart_in_their_directory(tmp_path: Path) -> None:
    authorities = []
    for _ in range(2):
        async with running(f"--certificate-dir={tmp_path}") as server:
            authorities.append(server.trust().get_ca_certs(binary_form=True))
    assert authorities[0] == authorities[1]


async def test_certificates_are_shared_in_a_secret() -> None:
    arguments = ("--certificate-secret=admission", "--webhook-namespace=system", "--webhook-service-name=svc")
    async with running(*arguments) as server:
        data = server.api.get(kinds.SECRETS, "admission", "system")["data"]
        assert data.keys() == {"tls.crt", "tls.key", "ca.crt", "ca.key"}


async def test_a_review_in_flight_is_answered_before_the_end() -> None:
    async with running() as server:
        held = server.api.faults.hold(verb="create", kind=kinds.POD_TEMPLATES)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(server.review("/jobs/validate", job()))
            await eventually(server.templates_asked)
            server.task.cancel()
            await asyncio.sleep(0)
            held.release()
            assert (await waiting)["allowed"]


async def test_a_review_that_outlives_the_patience_is_an_error_of_the_process() -> None:
    async with running("--graceful-shutdown-time=50ms") as server:
        server.api.faults.hold(verb="create", kind=kinds.POD_TEMPLATES)
        waiting = asyncio.create_task(server.review("/jobs/validate", job()))
        await eventually(server.templates_asked)
        server.task.cancel()
        with pytest.raises(ExceptionGroup) as group:
            await server.task
        assert group.group_contains(StartupError, match="close admission server failed: 1 reviews .* 0.05 s")
        with pytest.raises(aiohttp.ClientError):
            await waiting


async def test_a_port_in_use_is_named() -> None:
    async with FakeApiServer() as api:
        with closing(socket.socket()) as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(ExceptionGroup) as group:
                await serve(options(api, port))
            assert group.group_contains(ListenError, match=f"127.0.0.1:{port}")


async def test_an_api_server_that_refuses_is_named() -> None:
    async with FakeApiServer() as api:
        api.faults.fail(403, verb="create", times=None, message="no rights")
        with pytest.raises(ExceptionGroup) as group:
            await serve(options(api, free_port()))
        assert group.group_contains(StartupError, match="cannot start .registration.: .*no rights")
