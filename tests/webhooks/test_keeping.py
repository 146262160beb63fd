"""Certificates and registration over time."""

from __future__ import annotations

import asyncio
import base64
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock, SkippingClock
from stromboli.webhooks import certificates
from stromboli.webhooks.certificate_stores import DirectoryStore, MemoryStore, MountedCertificates
from stromboli.webhooks.certificates import Bundle, CertificateError
from stromboli.webhooks.endpoints import BY_PATH
from stromboli.webhooks.keeping import CertificateSource, GivenCertificates, Keeper, OwnCertificates, within
from stromboli.webhooks.registration import Address, NotRegistered, Registrar
from stromboli.webhooks.tls import ReloadableTls

HOSTS = ["127.0.0.1"]
ENDPOINT = BY_PATH["/jobs/validate"]
URL = Address(url="https://127.0.0.1:8443")


class Calendar:
    """A date that the test moves."""

    def __init__(self) -> None:
        self.now = certificates.utc_now()

    def __call__(self) -> datetime:
        return self.now


async def keeper_of(client: Client, source: CertificateSource, *, creates: bool = True) -> Keeper:
    tls = ReloadableTls(await source.current(""))
    return Keeper(source, tls, Registrar(client, URL, creates), [ENDPOINT], clock=SkippingClock())


def trusted(server: FakeApiServer) -> str:
    """The authorities in the configuration object."""
    (webhook,) = server.get(kinds.VALIDATING_WEBHOOKS, ENDPOINT.configuration)["webhooks"]
    return base64.b64decode(webhook["clientConfig"]["caBundle"]).decode()


def write(directory: Path, bundle: Bundle) -> None:
    for name, text in (("ca", bundle.authorities), ("crt", bundle.certificate), ("key", bundle.key)):
        (directory / name).write_text(text)


def mounted(directory: Path) -> GivenCertificates:
    return GivenCertificates(MountedCertificates(directory / "ca", directory / "crt", directory / "key"))


async def test_registration_puts_the_authority_in_place() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        keeper = await keeper_of(client, OwnCertificates(MemoryStore(), HOSTS))
        before = keeper.registered
        await keeper.register()
        assert (before, keeper.registered) == (False, True)
        assert trusted(server) == keeper.tls.bundle.authorities


async def test_an_object_the_chart_creates_late_is_waited_for() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        source, clock = OwnCertificates(MemoryStore(), HOSTS), FakeClock()
        tls = ReloadableTls(await source.current(""))
        keeper = Keeper(source, tls, Registrar(client, URL, creates=False), [ENDPOINT], clock=clock)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(keeper.register())
            while not clock.sleepers:  # noqa: ASYNC110 - the first attempt is over when the keeper sleeps
                await asyncio.sleep(0.001)
            server.put(
                kinds.VALIDATING_WEBHOOKS, {"metadata": {"name": ENDPOINT.configuration}, "webhooks": [{"name": "a"}]}
            )
            assert not waiting.done()
            await clock.advance(1)
        assert trusted(server) == tls.bundle.authorities


async def test_an_object_that_never_comes_is_an_error_after_five_minutes() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        keeper = await keeper_of(client, OwnCertificates(MemoryStore(), HOSTS), creates=False)
        with pytest.raises(NotRegistered, match="failed to get validating webhook"):
            await keeper.register()
        assert 290 < server.count("get", kinds.VALIDATING_WEBHOOKS) < 310


async def test_an_upgrade_that_empties_the_authority_is_repaired() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        keeper = await keeper_of(client, OwnCertificates(MemoryStore(), HOSTS), creates=False)
        empty = {"metadata": {"name": ENDPOINT.configuration}, "webhooks": [{"name": "a", "clientConfig": {}}]}
        server.put(kinds.VALIDATING_WEBHOOKS, empty)
        await keeper.register()
        server.put(kinds.VALIDATING_WEBHOOKS, empty)
        await keeper.round()
        assert trusted(server) == keeper.tls.bundle.authorities


async def test_mounted_certificates_are_taken_up_when_they_change(tmp_path: Path) -> None:
    async with FakeApiServer() as server, await server.client() as client:
        write(tmp_path, certificates.create(HOSTS, certificates.utc_now()))
        keeper = await keeper_of(client, mounted(tmp_path))
        await keeper.register()
        fresh = certificates.create(HOSTS, certificates.utc_now())
        write(tmp_path, fresh)
        await keeper.round()
        assert keeper.tls.bundle.certificate == fresh.certificate
        assert trusted(server) == fresh.authorities


async def test_mounted_certificates_that_do_not_fit_are_not_taken_up(tmp_path: Path) -> None:
    async with FakeApiServer() as server, await server.client() as client:
        good = certificates.create(HOSTS, certificates.utc_now())
        write(tmp_path, good)
        keeper = await keeper_of(client, mounted(tmp_path))
        await keeper.register()
        (tmp_path / "key").write_text(certificates.create(HOSTS, certificates.utc_now()).key)
        await keeper.round()
        (tmp_path / "crt").unlink()
        await keeper.round()
        assert keeper.tls.bundle.certificate == good.certificate
        assert trusted(server) == good.authorities


async def test_over_the_years_the_api_server_trusts_every_certificate_before_it_is_used() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        calendar = Calendar()
        keeper = await keeper_of(client, OwnCertificates(MemoryStore(), HOSTS, calendar))
        await keeper.register()
        certificates_seen, authorities_seen = set(), set()
        for _ in range(40):
            calendar.now += timedelta(days=90)
            before = trusted(server)
            await keeper.round()
            bundle = keeper.tls.bundle
            assert _is_trusted(bundle.certificate, before)
            assert certificates.expiry(bundle) > calendar.now
            certificates_seen.add(bundle.certificate)
            authorities_seen.add(bundle.authorities)
        assert len(certificates_seen) > 10
        assert len(authorities_seen) > 1


def _is_trusted(certificate: str, authorities: str) -> bool:
    from cryptography import x509

    serving = x509.load_pem_x509_certificate(certificate.encode())
    for authority in x509.load_pem_x509_certificates(authorities.encode()):
        try:
            serving.verify_directly_issued_by(authority)
        except Exception:
            continue
        return True
    return False


async def test_while_the_api_server_is_away_nothing_moves_to_an_authority_it_does_not_know() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        calendar = Calendar()
        keeper = await keeper_of(client, OwnCertificates(MemoryStore(), HOSTS, calendar))
        await keeper.register()
        calendar.now += timedelta(days=200)
        first = keeper.tls.bundle.certificate
        server.faults.fail(503, kind=kinds.VALIDATING_WEBHOOKS, times=None, retry_after=0)
        keeper.tls.load(_with_another_authority(keeper.tls.bundle))
        await keeper.round()
        assert keeper.tls.bundle.certificate == first


def _with_another_authority(bundle: Bundle) -> Bundle:
    return Bundle(certificates.create(HOSTS, certificates.utc_now()).authorities, bundle.certificate, bundle.key)


async def test_stored_certificates_that_cannot_be_read_are_replaced(tmp_path: Path) -> None:
    source = OwnCertificates(DirectoryStore(tmp_path), HOSTS)
    first = await source.current("")
    assert await source.current("") == first
    (tmp_path / "tls.crt").write_text("nonsense")
    second = await source.current("")
    certificates.check(second)
    assert second != first


async def test_certificates_that_do_not_come_are_an_error() -> None:
    class Never:
        async def current(self, told: str) -> Bundle:
            await asyncio.Event().wait()
            raise AssertionError

    with pytest.raises(CertificateError, match="no certificates within"):
        await within(0.01, Never())
