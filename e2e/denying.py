"""An admission webhook of the test's own that refuses what it is asked about, on either control plane."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from e2e.cluster import Cluster, Json
from stromboli.api.kinds import VALIDATING_WEBHOOKS
from stromboli.localcluster.certificates import issue, make_ca

HOST = "127.0.0.1"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def hook_name(cluster: Cluster) -> str:
    """Name of the webhook of a test."""
    return f"{cluster.namespace}.denying.example.com"


@asynccontextmanager
async def denied(cluster: Cluster, resource: str, message: str) -> AsyncIterator[None]:
    """While the block runs, creating ``resource`` (``pods``, ``pods/binding``) in the test's namespace is refused."""
    name, authority = hook_name(cluster), make_ca("denying")
    with tempfile.TemporaryDirectory() as folder:
        identity = issue(authority, "denying", hosts=[HOST])
        (Path(folder) / "crt").write_bytes(identity.certificate)
        (Path(folder) / "key").write_bytes(identity.key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(Path(folder) / "crt", Path(folder) / "key")
    runner = web.AppRunner(_refusing(message))
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0, ssl_context=context)
    await site.start()
    url = f"https://{HOST}:{runner.addresses[0][1]}/"
    try:
        await cluster.create(VALIDATING_WEBHOOKS, _configuration(cluster, resource, name, url, authority.certificate))
        yield
    finally:
        await cluster.delete(VALIDATING_WEBHOOKS, name)
        await runner.cleanup()


def _refusing(message: str) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        asked: Mapping[str, Json] = await request.json()
        response = {"uid": asked["request"]["uid"], "allowed": False, "status": {"message": message, "code": 403}}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    application = web.Application()
    application.router.add_post("/", answer)
    return application


def _configuration(cluster: Cluster, resource: str, name: str, url: str, authority: bytes) -> Json:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
    return {
        "apiVersion": VALIDATING_WEBHOOKS.api_version,
        "kind": VALIDATING_WEBHOOKS.kind,
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": name,
                "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()},
                "rules": [rule],
                "namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: cluster.namespace}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "failurePolicy": "Fail",
            }
        ],
    }
