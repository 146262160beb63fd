"""The admission server as a process: what is started in which order, and when it counts as ready (spec 07 section 1.2).

Reviews are answered before the API server is told to send any, and readiness is not said before the first can come:
certificates loaded, caches filled, listener open, authorities in every configuration object.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

import orjson
from aiohttp import web

from stromboli.kube.client import Client
from stromboli.kube.errors import KubeError
from stromboli.process.entering import connect
from stromboli.process.running import StartupError
from stromboli.telemetry import traces
from stromboli.telemetry.health import Health
from stromboli.telemetry.listening import Address, listening
from stromboli.telemetry.metrics import Metrics
from stromboli.webhooks import certificates, keeping, registration
from stromboli.webhooks.caching import CachedCluster
from stromboli.webhooks.certificate_stores import (
    CertificateStore,
    DirectoryStore,
    MemoryStore,
    MountedCertificates,
    SecretStore,
)
from stromboli.webhooks.configuration_file import ConfigurationFile
from stromboli.webhooks.context import Settings
from stromboli.webhooks.endpoints import BY_PATH
from stromboli.webhooks.keeping import CertificateSource, GivenCertificates, Keeper, OwnCertificates
from stromboli.webhooks.options import GATE_POD_LEVEL_RESOURCES, GATE_QUEUE_ADMISSION, Options
from stromboli.webhooks.podtemplates import LocalTemplates
from stromboli.webhooks.podtemplates.asking import AskedTemplates
from stromboli.webhooks.registration import NotRegistered
from stromboli.webhooks.serving import IN_FLIGHT, Admission, ReviewMetrics, application
from stromboli.webhooks.tls import ReloadableTls

log = logging.getLogger(__name__)

T = TypeVar("T")

PROGRAM: Final = "stromboli-webhooks"
START_SECONDS: Final = 60.0
"""For the API server to answer and the caches to fill."""
POD_LEVEL_RESOURCES_SINCE: Final = (1, 34)


async def serve(options: Options) -> None:
    """Run the admission server until cancelled.

    Raises ``FlagError``, ``StartupError``, ``CertificateError`` or ``ListenError`` where it cannot start.
    """
    traces.setup(PROGRAM)
    endpoints = options.endpoints()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(await connect(options, PROGRAM))
        source = certificate_source(options, client)
        tls = ReloadableTls(await _answered("certificates", keeping.within(START_SECONDS, source)))
        keeper = Keeper(source, tls, registrar(options, client), endpoints)
        cluster = CachedCluster(client, namespaces=BY_PATH["/podgroups/mutate"] in endpoints)
        health, metrics = Health(), Metrics(process_series=True)
        _add_readiness(health, keeper, cluster)
        await stack.enter_async_context(_side_endpoints(options, health, metrics, tls))
        settings = settings_of(options, await _answered("the version of the API server", _version(client)))
        file = ConfigurationFile(Path(options.admission_conf)) if options.admission_conf else None
        admission = Admission(
            settings=settings,
            cluster=cluster,
            templates=AskedTemplates(client, LocalTemplates(pod_level_resources=settings.pod_level_resources)),
            groups=lambda: file.groups if file is not None else None,
            metrics=ReviewMetrics(metrics),
        )
        await _run(options, admission, keeper, cluster, file)


async def _run(
    options: Options, admission: Admission, keeper: Keeper, cluster: CachedCluster, file: ConfigurationFile | None
) -> None:
    address = Address(options.listen_address, options.port)
    app, tls = application(admission, keeper.endpoints), keeper.tls.context
    async with asyncio.TaskGroup() as group:
        group.create_task(cluster.run())
        await _answered("caches", cluster.wait_synced(START_SECONDS))
        if file is not None:
            await file.look()
            group.create_task(file.run())
        try:
            async with listening(app, address, tls=tls, stop_seconds=options.graceful_shutdown_time) as bound:
                await _answered("registration", keeper.register())
                log.info("answering reviews on %s: %s", bound, ", ".join(each.path for each in keeper.endpoints))
                await keeper.run()
        finally:
            _all_answered(app, options.graceful_shutdown_time)


def _all_answered(app: web.Application, seconds: float) -> None:
    """A process that cut reviews off did not end well (spec 07 section 1.4)."""
    if late := app[IN_FLIGHT]:
        paths = ", ".join(sorted(set(late)))
        raise StartupError(
            f"close admission server failed: {len(late)} reviews were not answered within {seconds:g} s ({paths}); "
            "a longer --graceful-shutdown-time lets them end"
        )


def certificate_source(options: Options, client: Client) -> CertificateSource:
    """Mounted files, or certificates of our own in a Secret, a directory or memory, as the flags say."""
    if options.mounts_certificates:
        files = (options.ca_cert_file, options.tls_cert_file, options.tls_private_key_file)
        return GivenCertificates(MountedCertificates(*map(Path, files)))
    return OwnCertificates(_store(options, client), hosts(options))


def _store(options: Options, client: Client) -> CertificateStore:
    if options.certificate_secret:
        return SecretStore(client, options.webhook_namespace, options.certificate_secret)
    return DirectoryStore(Path(options.certificate_dir)) if options.certificate_dir else MemoryStore()


def hosts(options: Options) -> list[str]:
    """Names and addresses that the serving certificate is for."""
    named = [urlsplit(options.webhook_url).hostname or ""] if options.webhook_url else []
    if options.webhook_service_name and options.webhook_namespace:
        named += certificates.service_hosts(options.webhook_service_name, options.webhook_namespace)
    return list(dict.fromkeys([*filter(None, named), "localhost", "127.0.0.1"]))


def registrar(options: Options, client: Client) -> registration.Registrar:
    """Who keeps the webhook configurations in order."""
    address = registration.Address(options.webhook_url, options.webhook_namespace, options.webhook_service_name)
    return registration.Registrar(client, address, options.creates_configurations, tuple(options.scheduler_name))


def settings_of(options: Options, version: tuple[int, int]) -> Settings:
    """What decisions depend on; gates of Kubernetes default to what the API server's version has."""
    gates = options.feature_gates
    return Settings(
        scheduler_names=tuple(options.scheduler_name),
        max_queue_depth=options.max_queue_depth,
        enable_queue_allocated_pods_check=options.enable_queue_allocated_pods_check,
        enable_root_queue_protection=options.enable_root_queue_protection,
        scheduling_gates_queue_admission=gates.get(GATE_QUEUE_ADMISSION, False),
        pod_level_resources=gates.get(GATE_POD_LEVEL_RESOURCES, version >= POD_LEVEL_RESOURCES_SINCE),
    )


async def _version(client: Client) -> tuple[int, int]:
    answer = orjson.loads(await client.request("GET", "/version"))
    numbers = [int("".join(filter(str.isdigit, str(answer.get(part, "")))) or 0) for part in ("major", "minor")]
    return numbers[0], numbers[1]


async def _answered(what: str, waiting: Awaitable[T]) -> T:
    """The outcome of a step of starting; a failing API server becomes one line for the user."""
    try:
        return await waiting
    except (KubeError, NotRegistered) as error:
        raise StartupError(f"cannot start ({what}): {error}") from error


def _add_readiness(health: Health, keeper: Keeper, cluster: CachedCluster) -> None:
    health.add_readiness("caches", lambda: None if cluster.synced else "queues are not listed yet")
    health.add_readiness(
        "registration", lambda: None if keeper.registered else "webhook configurations do not hold our authority yet"
    )


@asynccontextmanager
async def _side_endpoints(
    options: Options, health: Health, metrics: Metrics, tls: ReloadableTls
) -> AsyncIterator[None]:
    """Health over the same TLS as the reviews, and metrics, each if enabled."""
    async with AsyncExitStack() as stack:
        if options.enable_healthz:
            address = Address.parse(options.healthz_address)
            await stack.enter_async_context(listening(health.application(), address, tls=tls.context))
        if options.enable_metrics:
            app = web.Application()
            app.add_routes(metrics.routes())
            await stack.enter_async_context(listening(app, Address.parse(options.metrics_address)))
        yield
