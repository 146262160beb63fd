"""Admission webhooks over real TLS on the loopback."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from stromboli.api import kinds
from stromboli.localcluster.admission.chain import AdmissionChain
from stromboli.localcluster.admission.webhooks.calling import Caller, ServiceAddresses
from stromboli.localcluster.admission.webhooks.dispatching import WebhookDispatcher
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.bootstrap import bootstrap
from stromboli.localcluster.certificates import Identity, issue, make_ca
from stromboli.localcluster.extending import SYSTEM, SubresourceRequest
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.requests import DeleteOptions, WriteOptions
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Object
from stromboli.localcluster.subresources.binding import Bindings
from tests.localcluster.sim.simulation import config_map, pod

CA = make_ca("test")
Review = Callable[[Object], dict[str, Any] | Awaitable[dict[str, Any]]]


def serving_context(directory: Path, *hosts: str, ca: Identity = CA) -> ssl.SSLContext:
    identity = issue(ca, "webhook", hosts=hosts or ("127.0.0.1",))
    (directory / "crt").write_bytes(identity.certificate)
    (directory / "key").write_bytes(identity.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "crt", directory / "key")
    return context


class Cluster:
    """A registry with webhooks, and a server that answers for them."""

    def __init__(self, registry: Registry, port: int) -> None:
        self.registry = registry
        self.port = port
        self.asked: list[Object] = []
        self.reviews: dict[str, Review] = {}
        self.context: ssl.SSLContext
        self.runner: web.AppRunner

    async def restart(self) -> None:
        """Stop the server and start it again on the same port."""
        await self.runner.cleanup()
        self.runner = await serve(self, self.context, self.port)

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        asked = body["request"]
        self.asked.append(asked)
        result = self.reviews[request.path](asked)
        response = await result if not isinstance(result, dict) else result
        if "raw" in response:
            return web.Response(body=response["raw"], status=response.get("status", 200))
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response({**review, "response": {"uid": asked["uid"], **response}})

    async def register(self, name: str, review: Review | None, *, validating: bool = False, **fields: Any) -> None:
        path = f"/{name}"
        if review is not None:
            self.reviews[path] = review
        client = {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": bundle(CA)}
        webhook = {
            "name": f"{name}.example.com",
            "clientConfig": client,
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **fields,
        }
        kind = kinds.VALIDATING_WEBHOOKS if validating else kinds.MUTATING_WEBHOOKS
        body: Object = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name},
            "webhooks": [webhook],
        }
        await self.registry.create(kind, body)

    async def create(self, name: str = "x", **options: Any) -> Object:
        return await self.registry.create(kinds.CONFIG_MAPS, config_map(name), "default", WriteOptions(**options))

    async def refused(self, **options: Any) -> StatusError:
        with pytest.raises(StatusError) as caught:
            await self.create(**options)
        return caught.value


def bundle(ca: Identity) -> str:
    return base64.b64encode(ca.certificate).decode()


def patch(*operations: Object) -> dict[str, Any]:
    encoded = base64.b64encode(orjson.dumps(operations)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def label(key: str, value: str = "yes") -> Review:
    """A webhook that sets a label."""

    def review(asked: Object) -> dict[str, Any]:
        labels = asked["object"]["metadata"].get("labels")
        if labels is None:
            return patch({"op": "add", "path": "/metadata/labels", "value": {key: value}})
        return patch({"op": "add", "path": f"/metadata/labels/{key}", "value": value})

    return review


def allow(asked: Object) -> dict[str, Any]:
    return {"allowed": True}


async def serve(made: Cluster, context: ssl.SSLContext, port: int) -> web.AppRunner:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    return runner


@asynccontextmanager
async def cluster(
    tmp_path: Path, *hosts: str, ca: Identity = CA, addresses: dict[tuple[str, str], str] | None = None
) -> AsyncIterator[Cluster]:
    registry = new_registry()
    await bootstrap(registry, "CA")
    made = Cluster(registry, 0)
    made.context = serving_context(tmp_path, *hosts, ca=ca)
    made.runner = await serve(made, made.context, 0)
    made.port = made.runner.addresses[0][1]
    known = {place: address.format(port=made.port) for place, address in (addresses or {}).items()}
    caller = Caller(ServiceAddresses(registry.store, known))
    registry.admission = AdmissionChain(registry.store, WebhookDispatcher(registry.store, caller))
    try:
        yield made
    finally:
        await caller.close()
        await made.runner.cleanup()


async def test_a_webhook_sees_the_whole_question(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        await made.register("look", allow, validating=True)
        await made.create(field_manager="me")
        (asked,) = made.asked
        assert asked["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
        assert asked["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
        assert (asked["operation"], asked["namespace"], asked["name"]) == ("CREATE", "default", "x")
        assert asked["object"]["metadata"]["name"] == "x"
        assert (asked["oldObject"], asked["dryRun"]) == (None, False)
        assert asked["userInfo"]["username"] == "system:apiserver"
        assert asked["options"]["fieldManager"] == "me"


async def test_updates_and_deletions_show_the_old_object(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        present = await made.create()
        await made.register("look", allow, validating=True)
        await made.registry.update(kinds.CONFIG_MAPS, {**present, "data": {"a": "b"}})
        await made.registry.delete(kinds.CONFIG_MAPS, "default", "x", DeleteOptions())
        update, deletion = made.asked
        assert (update["object"]["data"], update["oldObject"].get("data")) == ({"a": "b"}, None)
        assert deletion["object"] is None
        assert deletion["oldObject"]["data"] == {"a": "b"}


async def test_mutating_webhooks_run_in_turn(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        await made.register("a", label("first"))
        await made.register("b", label("second"))
        assert (await made.create())["metadata"]["labels"] == {"first": "yes", "second": "yes"}
        assert made.asked[1]["object"]["metadata"]["labels"] == {"first": "yes"}


async def test_validating_webhooks_see_what_mutating_ones_made(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        await made.register("z", label("late"))
        await made.register("a", allow, validating=True)
        await made.create()
        assert made.asked[-1]["object"]["metadata"]["labels"] == {"late": "yes"}


async def test_a_webhook_may_ask_to_run_again(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        await made.register("a", label("a"), reinvocationPolicy="IfNeeded")
        await made.register("b", label("b"), reinvocationPolicy="IfNeeded")
        await made.create()
        assert len(made.asked) == 3
        assert made.asked[2]["object"]["metadata"]["labels"] == {"a": "yes", "b": "yes"}


async def test_without_that_it_runs_once(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        await made.register("a", label("a"))
        await made.register("b", label("b"))
        await made.create()
        assert len(made.asked) == 2


async def test_warnings_reach_the_client(tmp_path: Path) -> None:
    heard: list[str] = []
    async with cluster(tmp_path) as made:
        await made.register("w", lambda asked: {"allowed": True, "warnings": ["old field"]}, validating=True)
        await made.create(warn=heard.append)
    assert heard == ["old field"]


DENIALS: dict[str, tuple[dict[str, Any], int, str]] = {
    "with a message": (
        {"status": {"message": "no such queue"}},
        400,
        'admission webhook "deny.example.com" denied the request: no such queue',
    ),
    "with code and message": (
        {"status": {"code": 403, "message": "not yours", "reason": "Forbidden"}},
        403,
        'admission webhook "deny.example.com" denied the request: not yours',
    ),
    "with a reason only": (
        {"status": {"reason": "Conflict"}},
        400,
        'admission webhook "deny.example.com" denied the request: Conflict',
    ),
    "without a word": ({}, 400, 'admission webhook "deny.example.com" denied the request without explanation'),
}


@pytest.mark.parametrize("validating", [True, False])
@pytest.mark.parametrize(("answer", "code", "message"), DENIALS.values(), ids=DENIALS.keys())
async def test_a_webhook_says_no(
    tmp_path: Path, answer: dict[str, Any], code: int, message: str, validating: bool
) -> None:
    async with cluster(tmp_path) as made:
        await made.register("deny", lambda asked: {"allowed": False, **answer}, validating=validating)
        error = await made.refused()
        assert (error.code, error.message) == (code, message)
        assert not [one for one in made.registry.store.list(kinds.CONFIG_MAPS, "default") if one.key.name == "x"]


async def hang(asked: Object) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


FAILURES: dict[str, tuple[Review, str]] = {
    "not an AdmissionReview": (
        lambda asked: {"raw": b'{"kind":"Pod","apiVersion":"v1"}'},
        "received invalid webhook response: expected webhook response of admission.k8s.io/v1, "
        "Kind=AdmissionReview, got v1, Kind=Pod",
    ),
    "not JSON": (lambda asked: {"raw": b"<html>"}, "received invalid webhook response: couldn't get version/kind"),
    "an answer to another question": (
        lambda asked: {"allowed": True, "uid": "other"},
        "received invalid webhook response: expected response.uid=",
    ),
    "a path that is not there": (
        lambda asked: {"raw": b"", "status": 404},
        "failed to call webhook: the server could not find the requested resource",
    ),
    "a server error": (
        lambda asked: {"raw": b"boom", "status": 500},
        'failed to call webhook: an error on the server ("boom") has prevented the request from succeeding',
    ),
    "no answer in time": (hang, "context deadline exceeded"),
    "a patch of another type": (
        lambda asked: {"allowed": True, "patch": "e30=", "patchType": "Merge"},
        "response.patchType is not JSONPatch",
    ),
}


@pytest.mark.parametrize(("review", "message"), FAILURES.values(), ids=FAILURES.keys())
async def test_a_webhook_fails(tmp_path: Path, review: Review, message: str) -> None:
    async with cluster(tmp_path) as made:
        await made.register("bad", review, timeoutSeconds=1)
        error = await made.refused()
        assert (error.code, error.reason) == (500, "InternalError")
        assert error.message.startswith('Internal error occurred: failed calling webhook "bad.example.com": ')
        assert message in error.message


@pytest.mark.parametrize("review", [review for review, _ in FAILURES.values()], ids=FAILURES.keys())
async def test_a_failure_can_be_ignored(tmp_path: Path, review: Review) -> None:
    async with cluster(tmp_path) as made:
        await made.register("bad", review, timeoutSeconds=1, failurePolicy="Ignore")
        await made.register("good", label("good"))
        assert (await made.create())["metadata"]["labels"] == {"good": "yes"}


async def test_a_denial_cannot_be_ignored(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        await made.register("deny", lambda asked: {"allowed": False}, failurePolicy="Ignore")
        assert (await made.refused()).code == 400


async def test_a_patch_that_does_not_apply(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        await made.register("bad", lambda asked: patch({"op": "remove", "path": "/spec/nothing"}))
        assert (await made.refused()).code == 500


async def test_a_restarted_webhook_is_asked_over_a_new_connection(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        await made.register("w", label("w"))
        await made.create("before")
        await made.restart()
        assert (await made.create("after"))["metadata"]["labels"] == {"w": "yes"}


async def test_nobody_listens(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        client = {"url": "https://127.0.0.1:1/x", "caBundle": bundle(CA)}
        await made.register("gone", None, clientConfig=client)
        error = await made.refused()
        assert error.message == (
            'Internal error occurred: failed calling webhook "gone.example.com": failed to call webhook: '
            'Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
        )


async def test_somebody_listens_who_speaks_no_tls(tmp_path: Path) -> None:
    def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with cluster(tmp_path) as made, await asyncio.start_server(hang_up, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        client = {"url": f"https://127.0.0.1:{port}/x", "caBundle": bundle(CA)}
        await made.register("w", None, clientConfig=client)
        message = (await made.refused()).message
        assert f'Post "https://127.0.0.1:{port}/x?timeout=10s": read tcp 127.0.0.1:{port}: ' in message
        assert "SSLContext" not in message


async def test_a_certificate_of_another_authority(tmp_path: Path) -> None:
    async with cluster(tmp_path, ca=make_ca("other")) as made:
        await made.register("w", allow)
        message = (await made.refused()).message
        assert message.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")
        assert made.asked == []


async def test_a_bundle_that_is_none(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        client = {"url": f"https://127.0.0.1:{made.port}/w", "caBundle": base64.b64encode(b"nonsense").decode()}
        await made.register("w", allow, clientConfig=client)
        assert "unable to load root certificates" in (await made.refused()).message


async def test_a_dry_run_only_calls_what_allows_it(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        await made.register("w", allow, sideEffects="Unknown")
        error = await made.refused(dry_run=True)
        assert (error.code, error.message) == (400, 'admission webhook "w.example.com" does not support dry run')
        await made.create()


async def test_a_dry_run_says_so(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        await made.register("w", allow, sideEffects="NoneOnDryRun")
        await made.create(dry_run=True)
        assert made.asked[0]["dryRun"] is True


async def test_conditions_keep_it_quiet(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        condition = {"name": "not-system", "expression": "!request.userInfo.username.startsWith('system:')"}
        await made.register("w", lambda asked: {"allowed": False}, matchConditions=[condition])
        await made.create()
        assert made.asked == []


SERVICE = {"name": "hook", "namespace": "volcano-system", "path": "/svc"}
HOST = "hook.volcano-system.svc"


async def test_a_service_from_the_map(tmp_path: Path) -> None:
    addresses = {("volcano-system", "hook"): "127.0.0.1:{port}"}
    async with cluster(tmp_path, HOST, addresses=addresses) as made:
        await made.register("svc", label("svc"), clientConfig={"service": SERVICE, "caBundle": bundle(CA)})
        assert (await made.create())["metadata"]["labels"] == {"svc": "yes"}


async def test_a_service_through_its_endpoints(tmp_path: Path) -> None:
    async with cluster(tmp_path, HOST) as made:
        metadata = {"name": "hook", "namespace": "volcano-system"}
        ports = [{"port": 443, "targetPort": made.port, "protocol": "TCP"}]
        service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}}
        await made.registry.create(kinds.SERVICES, service)
        subset = {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": made.port}]}
        endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]}
        await made.registry.create(kinds.ENDPOINTS, endpoints)
        await made.register("svc", label("svc"), clientConfig={"service": SERVICE, "caBundle": bundle(CA)})
        assert (await made.create())["metadata"]["labels"] == {"svc": "yes"}


async def test_a_simulated_pod_serves_nothing(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        metadata = {"name": "hook", "namespace": "volcano-system"}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 443}]}}
        await made.registry.create(kinds.SERVICES, service)
        subset = {"addresses": [{"ip": "10.64.0.7"}], "ports": [{"port": 8443}]}
        endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]}
        await made.registry.create(kinds.ENDPOINTS, endpoints)
        await made.register("svc", allow, clientConfig={"service": SERVICE, "caBundle": bundle(CA)})
        assert (
            "dial tcp 10.64.0.7:8443: connect: no route to host (the pod is simulated; "
            in (await made.refused()).message
        )


async def test_a_service_must_show_its_own_name(tmp_path: Path) -> None:
    addresses = {("volcano-system", "hook"): "127.0.0.1:{port}"}
    async with cluster(tmp_path, "127.0.0.1", addresses=addresses) as made:
        await made.register("svc", allow, clientConfig={"service": SERVICE, "caBundle": bundle(CA)})
        assert "tls: failed to verify certificate" in (await made.refused()).message


async def test_a_service_without_the_port_or_without_endpoints(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        metadata = {"name": "hook", "namespace": "volcano-system"}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 443}]}}
        await made.registry.create(kinds.SERVICES, service)
        await made.register("svc", allow, clientConfig={"service": SERVICE, "caBundle": bundle(CA)})
        assert (await made.refused()).message.endswith('no endpoints available for service "hook"')
        await made.registry.delete(kinds.MUTATING_WEBHOOKS, None, "svc")
        await made.register("svc", allow, clientConfig={"service": {**SERVICE, "port": 8443}, "caBundle": bundle(CA)})
        assert (await made.refused()).message.endswith('no service port 8443 found for service "hook"')


async def test_a_binding_can_be_watched_over(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/binding"]}
        await made.register("no", lambda asked: {"allowed": False, "status": {"message": "not there"}}, rules=[rule])
        await made.registry.create(kinds.PODS, pod("p"))
        body = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n"}}
        request = SubresourceRequest("create", kinds.PODS, "default", "p", "binding", body, {}, SYSTEM)
        with pytest.raises(StatusError, match="denied the request: not there"):
            await Bindings(made.registry)(request)
        (asked,) = made.asked
        assert (asked["kind"]["kind"], asked["resource"]["resource"], asked["subResource"]) == (
            "Binding",
            "pods",
            "binding",
        )


async def test_a_host_that_does_not_resolve(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        client = {"url": "https://nowhere.invalid/x", "caBundle": bundle(CA)}
        await made.register("gone", None, clientConfig=client)
        assert "dial tcp: lookup nowhere.invalid: no such host" in (await made.refused()).message


async def test_a_service_that_is_not_there(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        await made.register("svc", allow, clientConfig={"service": SERVICE, "caBundle": bundle(CA)})
        assert (await made.refused()).message == (
            'Internal error occurred: failed calling webhook "svc.example.com": failed to call webhook: '
            'Post "https://hook.volcano-system.svc:443/svc?timeout=10s": service "hook" not found'
        )
