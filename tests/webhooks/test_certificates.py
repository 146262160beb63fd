from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.testing.apiserver import FakeApiServer
from stromboli.webhooks import certificates
from stromboli.webhooks.certificate_stores import DirectoryStore, MemoryStore, MountedCertificates, SecretStore
from stromboli.webhooks.certificates import Bundle, CertificateError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = ["admission.system.svc", "localhost", "127.0.0.1"]
DAY = timedelta(days=1)


def serving(bundle: Bundle) -> x509.Certificate:
    return x509.load_pem_x509_certificate(bundle.certificate.encode())


def authorities(bundle: Bundle) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(bundle.authorities.encode())


def test_a_new_certificate_is_for_its_hosts_and_for_serving_only() -> None:
    bundle = certificates.create(HOSTS, NOW)
    certificate = serving(bundle)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["admission.system.svc", "localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert certificate.subject.rfc4514_string() == "CN=admission.system.svc"
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]
    certificate.verify_directly_issued_by(authorities(bundle)[0])
    certificates.check(bundle)


def test_a_fresh_certificate_is_left_alone() -> None:
    bundle = certificates.create(HOSTS, NOW)
    assert certificates.renewed(bundle, HOSTS, NOW + 200 * DAY, bundle.authorities) == bundle


def test_a_serving_certificate_is_renewed_well_before_it_ends() -> None:
    bundle = certificates.create(HOSTS, NOW)
    later = NOW + 250 * DAY
    renewed = certificates.renewed(bundle, HOSTS, later, bundle.authorities)
    assert renewed.authorities == bundle.authorities
    assert certificates.expiry(renewed) == later + certificates.SERVING_LIFE
    assert renewed.key != bundle.key
    certificates.check(renewed)


def test_another_host_needs_another_certificate() -> None:
    bundle = certificates.create(HOSTS, NOW)
    renewed = certificates.renewed(bundle, [*HOSTS, "10.0.0.1"], NOW, bundle.authorities)
    names = serving(renewed).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "10.0.0.1"]


def test_a_new_authority_is_trusted_before_it_is_used() -> None:
    bundle = certificates.create(HOSTS, NOW)
    later = NOW + 2500 * DAY
    bundle = certificates.renewed(bundle, HOSTS, NOW + 2400 * DAY, bundle.authorities)
    first = certificates.renewed(bundle, HOSTS, later, bundle.authorities)
    assert len(authorities(first)) == 2
    assert first.certificate == bundle.certificate
    assert first.authority_key != bundle.authority_key
    second = certificates.renewed(first, HOSTS, later, first.authorities)
    assert second.authorities == first.authorities
    serving(second).verify_directly_issued_by(authorities(second)[0])
    assert certificates.renewed(second, HOSTS, later, second.authorities) == second


def test_a_new_authority_signs_nothing_before_clients_have_been_told() -> None:
    bundle = certificates.create(HOSTS, NOW)
    later = NOW + 2500 * DAY
    bundle = certificates.renewed(bundle, HOSTS, NOW + 2300 * DAY, bundle.authorities)
    waiting = certificates.renewed(bundle, HOSTS, later, bundle.authorities)
    assert certificates.renewed(waiting, HOSTS, later, bundle.authorities) == waiting
    assert certificates.renewed(waiting, HOSTS, later, waiting.authorities) != waiting


def test_a_certificate_of_no_use_is_replaced_whoever_has_been_told() -> None:
    bundle = certificates.create(HOSTS, NOW)
    assert certificates.renewed(bundle, HOSTS, NOW + 400 * DAY, "").certificate != bundle.certificate
    assert certificates.renewed(bundle, ["other"], NOW, "").certificate != bundle.certificate


def test_certificates_of_a_clock_that_was_ahead_are_replaced_at_once() -> None:
    ahead = certificates.create(HOSTS, NOW + 30 * DAY)
    assert "valid only from" in (certificates.untimely(ahead, NOW) or "")
    now = certificates.renewed(ahead, HOSTS, NOW, "")
    assert certificates.untimely(now, NOW) is None
    serving(now).verify_directly_issued_by(authorities(now)[0])
    assert len(authorities(now)) == 1


def test_what_ended_years_ago_is_replaced_in_one_step() -> None:
    old = certificates.create(HOSTS, NOW - 5000 * DAY)
    assert "ended at" in (certificates.untimely(old, NOW) or "")
    now = certificates.renewed(old, HOSTS, NOW, "")
    assert certificates.untimely(now, NOW) is None
    assert certificates.renewed(now, HOSTS, NOW, now.authorities) == now


def test_an_authority_that_has_ended_is_dropped() -> None:
    bundle = certificates.create(HOSTS, NOW)
    for _ in range(2):
        bundle = certificates.renewed(bundle, HOSTS, NOW + 2500 * DAY, bundle.authorities)
    end = NOW + 3700 * DAY
    bundle = certificates.renewed(bundle, HOSTS, end, bundle.authorities)  # the serving certificate
    assert len(authorities(certificates.renewed(bundle, HOSTS, end, bundle.authorities))) == 1


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=30))
def test_through_the_years_every_step_is_trusted_by_who_knew_the_step_before(days: list[int]) -> None:
    now, bundle = NOW, certificates.create(HOSTS, NOW)
    for pause in days:
        now += min(pause, 100) * DAY
        before, bundle = bundle, certificates.renewed(bundle, HOSTS, now, bundle.authorities)
        known = authorities(before)  # ``told`` is always what the step before trusted.
        assert any(_issued(serving(bundle), authority) for authority in known)
        assert certificates.expiry(bundle) > now


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("member", ["certificate", "key", "authorities"])
def test_what_cannot_be_read_is_named(member: str) -> None:
    bundle = certificates.create(HOSTS, NOW)
    parts = {name: getattr(bundle, name) for name in ("authorities", "certificate", "key", "authority_key")}
    with pytest.raises(CertificateError):
        certificates.check(Bundle(**{**parts, member: "nonsense"}))


def test_a_key_of_another_certificate_is_told() -> None:
    one, other = certificates.create(HOSTS, NOW), certificates.create(HOSTS, NOW)
    with pytest.raises(CertificateError, match="does not belong"):
        certificates.check(Bundle(one.authorities, one.certificate, other.key))


# Stores


async def test_a_directory_keeps_certificates_to_itself(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "certificates")
    assert await store.load() is None
    bundle = certificates.create(HOSTS, NOW)
    assert await store.save(bundle) == bundle
    assert await DirectoryStore(tmp_path / "certificates").load() == bundle
    for name in ("tls.key", "ca.key"):
        assert stat.S_IMODE((tmp_path / "certificates" / name).stat().st_mode) == 0o600


async def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CertificateError, match="file"):
        await DirectoryStore(tmp_path / "file" / "below").save(certificates.create(HOSTS, NOW))


async def test_memory_forgets_nothing_while_it_lasts() -> None:
    store, bundle = MemoryStore(), certificates.create(HOSTS, NOW)
    assert await store.load() is None
    await store.save(bundle)
    assert await store.load() == bundle


async def test_replicas_that_start_together_end_with_one_authority() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        one, other = (SecretStore(client, "system", "admission") for _ in range(2))
        assert await one.load() is None
        assert await other.load() is None
        mine, theirs = certificates.create(HOSTS, NOW), certificates.create(HOSTS, NOW)
        assert await one.save(mine) == mine
        assert await other.save(theirs) == mine
        assert await other.load() == mine


async def test_a_renewal_that_comes_second_takes_the_first_one() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        one, other = (SecretStore(client, "system", "admission") for _ in range(2))
        await one.load()
        await one.save(certificates.create(HOSTS, NOW))
        await one.load()
        await other.load()
        first = await one.save(certificates.create(HOSTS, NOW))
        assert await other.save(certificates.create(HOSTS, NOW)) == first


async def test_a_secret_of_another_installer_is_taken_over_with_its_other_keys() -> None:
    async with FakeApiServer() as server, await server.client() as client:
        metadata = {"name": "admission", "namespace": "system"}
        server.put(kinds.SECRETS, {"metadata": metadata, "data": {"tls.crt": "eA==", "other": "eQ=="}})
        store = SecretStore(client, "system", "admission")
        assert await store.load() is None
        bundle = certificates.create(HOSTS, NOW)
        await store.save(bundle)
        assert await store.load() == bundle
        assert server.get(kinds.SECRETS, "admission", "system")["data"]["other"] == "eQ=="


async def test_the_first_mounted_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("ca.crt", "tls.crt", "tls.key")]
    with pytest.raises(CertificateError, match=r"failed to read cacert file \(.*ca.crt\): No such file or directory"):
        await MountedCertificates(*files).load()
    bundle = certificates.create(HOSTS, NOW)
    files[0].write_text(bundle.authorities)
    with pytest.raises(CertificateError, match=r"failed to read cert file \(.*tls.crt\)"):
        await MountedCertificates(*files).load()
    files[1].write_text(bundle.certificate)
    files[2].write_text(bundle.key)
    assert (await MountedCertificates(*files).load()).key == bundle.key


def test_python_itself_trusts_what_is_made_here(tmp_path: Path) -> None:
    bundle = certificates.create(HOSTS, certificates.utc_now())
    context = ssl.create_default_context(cadata=bundle.authorities)
    assert context.get_ca_certs()
    assert load_pem_private_key(bundle.key.encode(), None)
