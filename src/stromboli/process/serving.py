"""The endpoints that a process serves besides its work: health and metrics, as its flags say."""

from __future__ import annotations

import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from stromboli.process.flags import FlagError
from stromboli.telemetry.listening import Address, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from stromboli.process.options import ServingOptions
    from stromboli.telemetry.health import Health
    from stromboli.telemetry.metrics import Metrics


@asynccontextmanager
async def endpoints(
    options: ServingOptions, health: Health, metrics: Metrics, *, extra: Iterable[web.RouteDef] = ()
) -> AsyncIterator[None]:
    """Serve ``/healthz`` and friends and ``/metrics`` (with ``extra`` routes) while the block runs, each if enabled.

    Raises:
        ListenError: a port cannot be had.
        FlagError: the TLS files of the health endpoint cannot be used.
    """
    async with AsyncExitStack() as stack:
        if options.enable_healthz:
            address = Address.parse(options.healthz_address)
            await stack.enter_async_context(listening(health.application(), address, tls=health_tls(options)))
        if options.enable_metrics:
            application = web.Application()
            application.add_routes([*metrics.routes(), *extra])
            await stack.enter_async_context(listening(application, Address.parse(options.listen_address)))
        yield


def health_tls(options: ServingOptions) -> ssl.SSLContext | None:
    """TLS for the health endpoint when all three files are given, else None (plain HTTP).

    Raises:
        FlagError: a file is missing or not what its flag says.
    """
    if not (options.ca_cert_file and options.tls_cert_file and options.tls_private_key_file):
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.tls_cert_file, options.tls_private_key_file)
        context.load_verify_locations(options.ca_cert_file)
    except OSError as error:
        raise FlagError(
            f"cannot use --tls-cert-file={options.tls_cert_file}, --tls-private-key-file="
            f"{options.tls_private_key_file} and --ca-cert-file={options.ca_cert_file}: {error}"
        ) from error
    return context
