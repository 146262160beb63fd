"""Certificates and registration over time."""

from __future__ import annotations

import asyncio
import base64
import ssl
from datetime import datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.telemetry.listening import Address as LocalAddress
from stromboli.telemetry.listening import listening
from stromboli.testing.apiserver import FakeApiServer
from stromboli.testing.clocks import FakeClock, SkippingClock
from stromboli.webhooks import certificates
from stromboli.webhooks.certificate_stores import DirectoryStore, MemoryStore, MountedCertificates, SecretStore
from stromboli.webhooks.certificates import Bundle, CertificateError
from stromboli.webhooks.endpoints import BY_PATH
from stromboli.webhooks.keeping import (
    RETIRING_ROUNDS,
    CertificateSource,
    GivenCertificates,
    Keeper,
    OwnCertificates,
    within,
)
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
        for _ in range(RETIRING_ROUNDS + 2):
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
    first = await OwnCertificates(DirectoryStore(tmp_path), HOSTS).current("")
    assert await OwnCertificates(DirectoryStore(tmp_path), HOSTS).current("") == first
    (tmp_path / "tls.crt").write_text("nonsense")
    second = await OwnCertificates(DirectoryStore(tmp_path), HOSTS).current("")
    certificates.check(second)
    assert second != first


# What happens to certificates in a cluster, and what is said about it


async def test_a_certificate_that_ended_while_the_process_slept_is_replaced_and_that_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with FakeApiServer() as server, await server.client() as client:
        calendar = Calendar()
        keeper = await keeper_of(client, OwnCertificates(MemoryStore(), HOSTS, calendar))
        await keeper.register()
        calendar.now += timedelta(days=400)
        await keeper.round()
        assert certificates.untimely(keeper.tls.bundle, calendar.now) is None
        assert _is_trusted(keeper.tls.bundle.certificate, trusted(server))
        assert "the certificate ended at" in caplog.text


async def test_certificates_from_the_future_are_replaced_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeApiServer() as server, await server.client() as client:
        calendar = Calendar()
        calendar.now += timedelta(days=30)
        keeper = await keeper_of(client, OwnCertificates(MemoryStore(), HOSTS, calendar))
        await keeper.register()
        calendar.now -= timedelta(days=30)
        await keeper.round()
        assert certificates.untimely(keeper.tls.bundle, calendar.now) is None
        assert _is_trusted(keeper.tls.bundle.certificate, trusted(server))
        assert "the certificate is valid only from" in caplog.text


@pytest.mark.parametrize("days", [-800, 800], ids=["ended", "not yet valid"])
async def test_mounted_certificates_of_another_time_are_not_taken_up_in_place_of_good_ones(
    tmp_path: Path, days: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakeApiServer() as server, await server.client() as client:
        good = certificates.create(HOSTS, certificates.utc_now())
        write(tmp_path, good)
        keeper = await keeper_of(client, mounted(tmp_path))
        await keeper.register()
        write(tmp_path, certificates.create(HOSTS, certificates.utc_now() + timedelta(days=days)))
        await keeper.round()
        assert keeper.tls.bundle.certificate == good.certificate
        assert trusted(server) == good.authorities
        assert "the one in use is kept until it ends" in caplog.text


async def test_a_server_that_starts_with_an_ended_certificate_says_so_and_takes_up_the_next_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakeApiServer() as server, await server.client() as client:
        write(tmp_path, certificates.create(HOSTS, certificates.utc_now() - timedelta(days=800)))
        keeper = await keeper_of(client, mounted(tmp_path))
        await keeper.register()
        assert "reviews fail until the mounted files are replaced" in caplog.text
        fresh = certificates.create(HOSTS, certificates.utc_now())
        write(tmp_path, fresh)
        await keeper.round()
        assert keeper.tls.bundle.certificate == fresh.certificate
        assert _is_trusted(fresh.certificate, trusted(server))


async def test_a_deleted_secret_is_written_again_with_what_clients_trust(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeApiServer() as server, await server.client() as client:
        keeper = await keeper_of(client, OwnCertificates(SecretStore(client, "system", "admission"), HOSTS))
        await keeper.register()
        before, data = keeper.tls.bundle, server.get(kinds.SECRETS, "admission", "system")["data"]
        server.remove(kinds.SECRETS, "admission", "system")
        await keeper.round()
        assert keeper.tls.bundle == before
        assert server.get(kinds.SECRETS, "admission", "system")["data"] == data
        assert "no longer stored; they are stored again" in caplog.text


async def test_a_replaced_authority_is_told_before_it_is_used_and_the_old_one_leaves_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with FakeApiServer() as server, await server.client() as client:
        keeper = await keeper_of(client, OwnCertificates(SecretStore(client, "system", "admission"), HOSTS))
        await keeper.register()
        old, new = keeper.tls.bundle, certificates.create(HOSTS, certificates.utc_now())
        other = SecretStore(client, "system", "admission")
        await other.load()
        await other.save(new)
        await keeper.round()
        assert keeper.tls.bundle == old
        assert _is_trusted(new.certificate, trusted(server))
        await keeper.round()
        assert keeper.tls.bundle == new
        # A replica that has not read the Secret yet still serves the old certificate.
        assert _is_trusted(old.certificate, trusted(server))
        assert _is_trusted(new.certificate, trusted(server))
        assert "the authority has been replaced" in caplog.text
        for _ in range(RETIRING_ROUNDS):
            await keeper.round()
        assert trusted(server) == new.authorities


async def test_under_load_no_review_is_refused_while_the_authority_is_replaced_and_the_secret_deleted() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        keeper = await keeper_of(client, OwnCertificates(SecretStore(client, "system", "admission"), HOSTS))
        await keeper.register()
        app, tls = web.Application(), keeper.tls.context
        app.router.add_get("/", _fine)
        async with listening(app, LocalAddress("127.0.0.1", 0), tls=tls) as address, asyncio.TaskGroup() as group:
            load = Load(server, f"https://{address}/")
            workers = [group.create_task(load.work()) for _ in range(4)]
            await load.more()
            for _ in range(3):
                other = SecretStore(client, "system", "admission")
                await other.load()
                await other.save(certificates.create(HOSTS, certificates.utc_now()))
                for _ in range(3):
                    await keeper.round()
                    await load.more()
                server.remove(kinds.SECRETS, "admission", "system")
                await keeper.round()
                await load.more()
            for worker in workers:
                worker.cancel()
        assert load.answered > 100


async def _fine(request: web.Request) -> web.Response:
    return web.Response(text="fine")


class Load:
    """Connections, each with the trust of the webhook configuration as it is at that time; any refusal is raised."""

    def __init__(self, server: FakeApiServer, url: str) -> None:
        self.answered = 0
        self._server, self._url = server, url
        self._progress = asyncio.Condition()

    async def work(self) -> None:
        while True:
            trust = ssl.create_default_context(cadata=trusted(self._server))
            connector = aiohttp.TCPConnector(ssl=trust, force_close=True)
            async with aiohttp.ClientSession(connector=connector) as session, session.get(self._url) as answer:
                assert answer.status == 200
            async with self._progress:
                self.answered += 1
                self._progress.notify_all()

    async def more(self, count: int = 12) -> None:
        """Wait for so many further answers."""
        goal = self.answered + count
        async with self._progress:
            await self._progress.wait_for(lambda: self.answered >= goal)


async def test_a_replaced_authority_is_not_used_while_the_api_server_cannot_be_told() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        store = MemoryStore()
        keeper = await keeper_of(client, OwnCertificates(store, HOSTS))
        await keeper.register()
        old, new = keeper.tls.bundle, certificates.create(HOSTS, certificates.utc_now())
        await store.save(new)
        server.faults.fail(403, kind=kinds.VALIDATING_WEBHOOKS, times=None)
        for _ in range(3):
            await keeper.round()
        assert keeper.tls.bundle == old
        server.faults.clear()
        for _ in range(2):
            await keeper.round()
        assert keeper.tls.bundle == new
        assert _is_trusted(new.certificate, trusted(server))


async def test_certificates_that_do_not_come_are_an_error() -> None:
    class Never:
        async def current(self, told: str) -> Bundle:
            await asyncio.Event().wait()
            raise AssertionError

    with pytest.raises(CertificateError, match="no certificates within"):
        await within(0.01, Never())
