"""Whether an API server can call webhooks on this machine: tried out before anything is installed that needs it."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import ssl
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.kube.errors import ApiError
from stromboli.kube.json import JsonObject
from stromboli.localcluster import certificates

NAMESPACE = "default"
LABEL = "stromboli-e2e-reaching"
TRY_SECONDS = 30.0
"""For a configuration to count at every API server."""
POLL_SECONDS = 0.2


class NotReachable(Exception):
    """The API server cannot call us; the text has its words and the next step."""

    for_user = True


def address_towards(url: str) -> str:
    """The address of this machine that a connection to ``url`` leaves from."""
    parts = urlsplit(url)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((parts.hostname or "127.0.0.1", parts.port or 443))  # sends nothing: it only picks a route
        return str(probe.getsockname()[0])


async def check(client: Client, host: str) -> None:
    """Let the API server call a webhook at ``host``; it is registered for one object, which is not stored.

    Raises:
        NotReachable: the call failed, or never came.
    """
    called = asyncio.Event()
    async with _listening(host, called) as (port, authority):
        configuration = _configuration(f"https://{host}:{port}/", authority)
        await client.create(kinds.VALIDATING_WEBHOOKS, configuration)
        try:
            await _until_called(client, called, f"https://{host}:{port}")
        finally:
            await client.delete(kinds.VALIDATING_WEBHOOKS, configuration["metadata"]["name"])


async def _until_called(client: Client, called: asyncio.Event, address: str) -> None:
    deadline = time.monotonic() + TRY_SECONDS
    while not called.is_set():
        try:
            await client.create(kinds.CONFIG_MAPS, _object(), NAMESPACE, dry_run=True)
        except ApiError as error:
            raise NotReachable(_advice(address, str(error))) from error
        if time.monotonic() > deadline:
            raise NotReachable(_advice(address, f"nothing came within {TRY_SECONDS:.0f} s"))
        await asyncio.sleep(POLL_SECONDS)


def _advice(address: str, words: str) -> str:
    return (
        f"the API server cannot call webhooks at {address}, where this machine would answer: {words}\n"
        "install the chart into the cluster instead (docs/guide/install.md), and run the suite with E2E_RUNNING=1"
    )


@asynccontextmanager
async def _listening(host: str, called: asyncio.Event) -> AsyncIterator[tuple[int, bytes]]:
    """A server that allows everything and notes that it was called: its port, and the authority of its certificate."""

    async def answer(request: web.Request) -> web.Response:
        review = await request.json()
        called.set()
        return web.json_response({**review, "response": {"uid": review["request"]["uid"], "allowed": True}})

    authority = certificates.make_ca("stromboli-e2e")
    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, 0, ssl_context=_tls(authority, host))
        await site.start()
        yield runner.addresses[0][1], authority.certificate
    finally:
        await runner.cleanup()


def _tls(authority: certificates.Identity, host: str) -> ssl.SSLContext:
    identity = certificates.issue(authority, "reaching", hosts=[host])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as place:
        certificate, key = Path(place, "tls.crt"), Path(place, "tls.key")
        certificate.write_bytes(identity.certificate)
        certificates.write_private(key, identity.key)
        context.load_cert_chain(certificate, key)
    return context


def _configuration(url: str, authority: bytes) -> JsonObject:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    return {
        "apiVersion": kinds.VALIDATING_WEBHOOKS.api_version,
        "kind": kinds.VALIDATING_WEBHOOKS.kind,
        "metadata": {"name": f"{LABEL}-{os.getpid()}"},
        "webhooks": [
            {
                "name": "reaching.stromboli.invalid",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 5,
                "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()},
                "rules": [rule],
                "objectSelector": {"matchLabels": {LABEL: str(os.getpid())}},
            }
        ],
    }


def _object() -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"generateName": f"{LABEL}-", "labels": {LABEL: str(os.getpid())}},
    }
