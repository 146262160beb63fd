"""Installing the chart without pods: CRDs, roles and webhook configurations as rendered, processes on this machine.

What differs from a cluster with pods is little, and all of it is here: webhooks are reached by URL instead of Service,
each process gets a kubeconfig with a token of its ServiceAccount instead of a mounted one, files instead of mounted
ConfigMaps. Flags are those of the rendered Deployments.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from e2e.realcluster import kubeconfigs
from e2e.realcluster.rendering import Release, account, container_arguments, container_environment, named, of_kind
from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.cli.stack import CONTROLLERS, SCHEDULER, WEBHOOKS
from stromboli.kube.client import Client, PatchType
from stromboli.kube.errors import AlreadyExists, NotFound
from stromboli.kube.json import JsonObject
from stromboli.process.ports import free_port

ESTABLISHED_SECONDS = 180.0
GONE_SECONDS = 120.0
TOKEN_SECONDS = 6 * 3600
OBJECTS = (
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
"""What is created after the CustomResourceDefinitions, in this order."""
MANAGER = "stromboli-e2e"
LOOPBACK = "127.0.0.1"
BY_KIND: Mapping[str, Kind] = {kind.kind: kind for kind in kinds.ALL if kind not in kinds.OWN}


class Target(Protocol):
    """Where the chart goes: an administrator's kubeconfig, a directory for files, our address for the API server."""

    @property
    def directory(self) -> Path: ...
    @property
    def kubeconfig(self) -> Path: ...
    @property
    def host(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Installation:
    """How the three processes are to be started: arguments by process, environment of all."""

    arguments: Mapping[str, Sequence[str]]
    environment: Mapping[str, str]


async def install(
    cluster: Target, objects: Sequence[JsonObject], release: Release, created: list[JsonObject] | None = None
) -> Installation:
    """Bring the chart's objects into the cluster and answer how its processes are started on this machine.

    What was not there before is added to ``created``, in order; what was there is brought up to date.
    """
    port, created = free_port(), [] if created is None else created
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": release.namespace}}
    definitions = of_kind(objects, "CustomResourceDefinition")
    async with await Client.connect(kubeconfig=str(cluster.kubeconfig), qps=0) as client:
        for item in (namespace, *definitions, *of_kind(objects, *OBJECTS)):
            if await _put(client, _reached_by_url(item, f"https://{cluster.host}:{port}")):
                created.append(item)
            if item in definitions:
                await _established(client, item["metadata"]["name"])
        deployments = _deployments(objects, release)
        arguments = {
            name: [*container_arguments(deployment), *await _here(client, cluster, name, deployment, objects, port)]
            for name, deployment in deployments.items()
        }
        return Installation(arguments, container_environment(deployments[CONTROLLERS]))


async def take_away(kubeconfig: Path, created: Sequence[JsonObject]) -> None:
    """Delete what :func:`install` has created, the latest first: webhooks that nobody answers must not outlive it.

    Returns when all of it is gone, which for definitions and namespaces takes a while.
    """
    async with await Client.connect(kubeconfig=str(kubeconfig), qps=0) as client:
        for item in reversed(created):
            with contextlib.suppress(NotFound):
                await client.delete(BY_KIND[item["kind"]], item["metadata"]["name"], item["metadata"].get("namespace"))
        for item in reversed(created):
            await _gone(client, item)


async def _gone(client: Client, item: JsonObject) -> None:
    kind, metadata = BY_KIND[item["kind"]], item["metadata"]
    deadline = time.monotonic() + GONE_SECONDS
    with contextlib.suppress(NotFound):
        while True:
            await client.get(kind, metadata["name"], metadata.get("namespace"))
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{kind.kind} {metadata['name']} is still there {GONE_SECONDS:.0f} s after its deletion"
                )
            await asyncio.sleep(0.1)


async def create_definitions(client: Client, objects: Sequence[JsonObject]) -> None:
    """Create the chart's CustomResourceDefinitions; returns when all are served."""
    for item in of_kind(objects, "CustomResourceDefinition"):
        await client.create(kinds.CUSTOM_RESOURCE_DEFINITIONS, item)
        await _established(client, item["metadata"]["name"])


async def _put(client: Client, item: JsonObject) -> bool:
    """Create an object, or bring it up to date; answers whether it was not there before."""
    kind, metadata = BY_KIND[item["kind"]], item["metadata"]
    try:
        await client.create(kind, item)
    except AlreadyExists:
        await client.patch(
            kind,
            metadata["name"],
            item,
            metadata.get("namespace"),
            type=PatchType.APPLY,
            field_manager=MANAGER,
            force=True,
        )
        return False
    return True


def _deployments(objects: Sequence[JsonObject], release: Release) -> dict[str, JsonObject]:
    suffixes = {WEBHOOKS: "admission", CONTROLLERS: "controllers", SCHEDULER: "scheduler"}
    return {name: named(objects, "Deployment", f"{release.name}-{suffix}") for name, suffix in suffixes.items()}


async def _here(
    client: Client,
    cluster: Target,
    name: str,
    deployment: JsonObject,
    objects: Sequence[JsonObject],
    port: int,
) -> list[str]:
    """Arguments that take the place of what a pod would have."""
    who, where = account(deployment), deployment["metadata"]["namespace"]
    kubeconfig = cluster.directory / f"{name}.kubeconfig"
    kubeconfigs.write_for_token(kubeconfig, cluster.kubeconfig, await _token(client, who, where))
    files = {
        flag: _written(cluster.directory, named(objects, "ConfigMap", f"{who}-configmap"), key)
        for process, flag, key in (
            (SCHEDULER, "--scheduler-conf", "volcano-scheduler.conf"),
            (WEBHOOKS, "--admission-conf", "volcano-admission.conf"),
        )
        if process == name
    }
    metrics = f"{LOOPBACK}:{free_port()}"
    reviews = [f"--port={port}", f"--listen-address={cluster.host}", f"--metrics-address={metrics}"]
    return [
        f"--kubeconfig={kubeconfig}",
        f"--master={kubeconfigs.server(cluster.kubeconfig)}",
        *(f"{flag}={path}" for flag, path in files.items()),
        *(reviews if name == WEBHOOKS else [f"--listen-address={metrics}"]),
    ]


def _written(directory: Path, config_map: JsonObject, key: str) -> Path:
    path = directory / key
    path.write_text(config_map["data"][key])
    return path


async def _token(client: Client, name: str, namespace: str) -> str:
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    }
    answer = await client.create(kinds.SERVICE_ACCOUNTS, request, namespace, name=name, subresource="token")
    return str(answer["status"]["token"])


def _reached_by_url(item: JsonObject, address: str) -> JsonObject:
    """A webhook configuration whose webhooks are called at ``address``; any other object as it is."""
    if "webhooks" not in item:
        return item
    webhooks = [
        {**webhook, "clientConfig": {"url": address + webhook["clientConfig"]["service"]["path"]}}
        for webhook in item["webhooks"]
    ]
    return {**item, "webhooks": webhooks}


async def _established(client: Client, name: str) -> None:
    deadline = time.monotonic() + ESTABLISHED_SECONDS
    while True:
        found = await client.get(kinds.CUSTOM_RESOURCE_DEFINITIONS, name)
        conditions = {item["type"]: item for item in found.get("status", {}).get("conditions") or []}
        if conditions.get("Established", {}).get("status") == "True":
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"CustomResourceDefinition {name} is not established: {list(conditions.values())}")
        await asyncio.sleep(0.05)
