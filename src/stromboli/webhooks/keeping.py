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
RETIRING_ROUNDS: Final = 12
"""Two minutes: longer than the kubelets take to bring a changed Secret to every replica."""
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
        self._used: Bundle | None = None

    async def current(self, told: str) -> Bundle:
        """The stored certificates, made or renewed by one step where that is due.

        Where the store has lost those in use they are stored again: clients trust them.
        """
        stored = await self._stored()
        if stored is None and self._used is not None:
            log.warning("the certificates in use are no longer stored; they are stored again")
        known = stored or self._used
        wanted = self._renewed(known, told) if known else certificates.create(self._hosts, self._now())
        if wanted != stored:
            self._say_why(known)
            wanted = await self._store.save(wanted)
            log.debug("certificates written, valid until %s", certificates.expiry(wanted).isoformat())
        self._used = wanted
        return wanted

    def _say_why(self, known: Bundle | None) -> None:
        if known is not None and (why := certificates.untimely(known, self._now())):
            log.warning("%s; it is replaced", why)

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

    def __init__(self, files: MountedCertificates, now: Callable[[], datetime] = certificates.utc_now) -> None:
        self._files, self._now = files, now
        self._used: Bundle | None = None

    async def current(self, told: str) -> Bundle:
        """The files' present content, unless that has no use at this time while what was there before has."""
        bundle = await self._files.load()
        certificates.check(bundle)
        if why := certificates.untimely(bundle, self._now()):
            if self._used is not None and certificates.untimely(self._used, self._now()) is None:
                raise CertificateError(f"{why}; the one in use is kept until it ends")
            log.error("%s; reviews fail until the mounted files are replaced, which is noticed by itself", why)
        self._used = bundle
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
        self._coming = ""
        self._retiring: list[str] = []
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
        self._retiring = self._retiring[1:]
        await self._tell_all(certificates.united(self.tls.bundle.authorities, self._coming, *self._retiring))

    async def _take_up(self) -> None:
        try:
            bundle = await self._source.current(self._told)
            if bundle != self.tls.bundle and self._can_be_met(bundle):
                # Replicas do not take up a replaced authority at the same moment: the old one stays trusted for long.
                self._retiring = [self.tls.bundle.authorities] * RETIRING_ROUNDS if self._coming else self._retiring
                self._coming = ""
                self.tls.load(bundle)
                log.info("certificates taken up, valid until %s", certificates.expiry(bundle).isoformat())
        except (CertificateError, KubeError) as error:
            log.error("certificates could not be checked: %s", error)

    def _can_be_met(self, bundle: Bundle) -> bool:
        """Whether the API server trusts ``bundle``; where it does not it is told in this round, and asked in the next.

        A certificate that has no use at this time is replaced by any other.
        """
        if not self._told or certificates.is_trusted(bundle, self._told):
            return True
        if certificates.untimely(self.tls.bundle, certificates.utc_now()):
            return True
        if self._coming != bundle.authorities:
            log.warning("the authority has been replaced; it is used when the API server has been told of it")
        self._coming = bundle.authorities
        return False

    async def _tell_all(self, authorities: str) -> bool:
        told = [await self._tell(endpoint, authorities) for endpoint in self.endpoints]
        if all(told):
            self._told = authorities
        return all(told)

    async def _tell(self, endpoint: Endpoint, authorities: str) -> bool:
        try:
            if await self._registrar.register(endpoint, authorities):
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
