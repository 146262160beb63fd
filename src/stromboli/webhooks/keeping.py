"""Keeps the server callable for as long as it runs: certificates renewed or reloaded, configuration objects in order.

A round of :meth:`Keeper.round` takes one step of renewal and then tells the API server. What fails in a round is logged
and tried again in the next one; serving goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Protocol

from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import KubeError
from stromboli.webhooks import certificates
from stromboli.webhooks.certificate_stores import CertificateStore, MountedCertificates
from stromboli.webhooks.certificates import Bundle, CertificateError
from stromboli.webhooks.endpoints import Endpoint
from stromboli.webhooks.registration import NotRegistered, Registrar
from stromboli.webhooks.tls import ReloadableTls

log = logging.getLogger(__name__)

ROUND_SECONDS: Final = 10.0
REGISTRATION_DEADLINE_SECONDS: Final = 300.0
REGISTRATION_RETRY_SECONDS: Final = 1.0


class CertificateSource(Protocol):
    """Where the certificates come from."""

    async def current(self, told: str) -> Bundle:
        """The certificates to use now, the API server trusting ``told``. Raises ``CertificateError``, ``KubeError``."""


class OwnCertificates:
    """Certificates made, stored and renewed here."""

    def __init__(
        self, store: CertificateStore, hosts: Sequence[str], now: Callable[[], datetime] = certificates.utc_now
    ) -> None:
        self._store, self._hosts, self._now = store, hosts, now

    async def current(self, told: str) -> Bundle:
        """The stored certificates, made or renewed by one step where that is due."""
        stored = await self._stored()
        wanted = self._renewed(stored, told) if stored else certificates.create(self._hosts, self._now())
        if wanted == stored:
            return wanted
        saved = await self._store.save(wanted)
        log.debug("certificates written, valid until %s", certificates.expiry(saved).isoformat())
        return saved

    async def _stored(self) -> Bundle | None:
        """What is stored and can be used; what cannot be read is replaced rather than served."""
        try:
            stored = await self._store.load()
            if stored is not None:
                certificates.check(stored)
                self._renewed(stored, "")
        except CertificateError as error:
            log.warning("stored certificates are replaced: %s", error)
            return None
        return stored

    def _renewed(self, bundle: Bundle, told: str) -> Bundle:
        return certificates.renewed(bundle, self._hosts, self._now(), told)


class GivenCertificates:
    """Certificates that somebody else mounts and renews."""

    def __init__(self, files: MountedCertificates) -> None:
        self._files = files

    async def current(self, told: str) -> Bundle:
        """The files' present content."""
        bundle = await self._files.load()
        certificates.check(bundle)
        return bundle


class Keeper:
    """Certificates and registration of one server."""

    def __init__(
        self,
        source: CertificateSource,
        tls: ReloadableTls,
        registrar: Registrar,
        endpoints: Sequence[Endpoint],
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.tls, self.endpoints = tls, endpoints
        self._source, self._registrar, self._clock = source, registrar, clock
        self._told = ""
        self.registered = not endpoints
        """Whether every configuration object has been in order at least once."""

    async def register(self) -> None:
        """Bring all configuration objects up to date, waiting for those that the chart has not created yet.

        Raises ``NotRegistered`` for one that is still missing after five minutes, ``KubeError`` for any other failure.
        """
        for endpoint in self.endpoints:
            await self._register_patiently(endpoint)
        self._told = self.tls.bundle.authorities
        self.registered = True

    async def _register_patiently(self, endpoint: Endpoint) -> None:
        deadline = self._clock.monotonic() + REGISTRATION_DEADLINE_SECONDS
        waiting = False
        while True:
            try:
                await self._registrar.register(endpoint, self.tls.bundle.authorities)
                return
            except NotRegistered as error:
                if self._clock.monotonic() >= deadline:
                    raise
                if not waiting:
                    log.info("waiting for %s: %s", endpoint.configuration, error)
                waiting = True
            await self._clock.sleep(REGISTRATION_RETRY_SECONDS)

    async def run(self) -> None:
        """A round every :data:`ROUND_SECONDS` until cancelled."""
        while True:
            await self._clock.sleep(ROUND_SECONDS)
            await self.round()

    async def round(self) -> None:
        """Take up changed certificates, then tell the API server. Never raises for what a later round may mend."""
        await self._take_up()
        told = [await self._tell(endpoint) for endpoint in self.endpoints]
        if all(told):
            self._told = self.tls.bundle.authorities

    async def _take_up(self) -> None:
        try:
            bundle = await self._source.current(self._told)
            if bundle != self.tls.bundle:
                self.tls.load(bundle)
                log.info("certificates taken up, valid until %s", certificates.expiry(bundle).isoformat())
        except (CertificateError, KubeError) as error:
            log.error("certificates could not be checked: %s", error)

    async def _tell(self, endpoint: Endpoint) -> bool:
        try:
            if await self._registrar.register(endpoint, self.tls.bundle.authorities):
                log.info("%s updated", endpoint.configuration)
        except (NotRegistered, KubeError) as error:
            log.error("%s could not be updated: %s", endpoint.configuration, error)
            return False
        return True


async def within(seconds: float, source: CertificateSource) -> Bundle:
    """The source's first bundle; raises ``CertificateError`` when it takes longer than ``seconds``."""
    try:
        async with asyncio.timeout(seconds):
            return await source.current(told="")
    except TimeoutError as error:
        raise CertificateError(f"no certificates within {seconds:g} s") from error
