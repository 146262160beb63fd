"""Certificates of the admission server: an authority of its own and what it signs (spec 07 section 2).

Everything here is arithmetic on PEM texts and times; where the texts are kept is the business of
:mod:`stromboli.webhooks.certificate_stores`.

A renewal never breaks a connection. A new authority is first only *trusted*, beside the old one; the serving
certificate moves to it in a later step, when clients have been told. :func:`renewed` performs one step at a time.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE: Final = timedelta(days=3650)
SERVING_LIFE: Final = timedelta(days=365)
CLOCK_SKEW: Final = timedelta(minutes=5)
"""Certificates begin this much in the past, for API servers whose clock is behind."""
RENEW_AFTER: Final = 2 / 3
"""The part of its life after which a certificate is renewed."""


class CertificateError(Exception):
    """Certificates that cannot be used; the text names what and why in one line."""

    for_user = True


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a server needs, all PEM. ``authority_key`` is empty where the certificates are somebody else's."""

    authorities: str
    """Trusted certificates, the newest first: the content of ``caBundle``."""
    certificate: str
    key: str
    authority_key: str = ""


def create(hosts: Sequence[str], now: datetime) -> Bundle:
    """A new authority and a serving certificate for ``hosts`` (names or addresses; the first is the subject)."""
    authority, authority_key = _authority(hosts[0], now)
    certificate, key = _serving(authority, authority_key, hosts, now)
    return Bundle(_pem(authority), certificate, key, _key_pem(authority_key))


def renewed(bundle: Bundle, hosts: Sequence[str], now: datetime, told: str) -> Bundle:
    """``bundle`` after the next step of renewal; ``bundle`` itself where nothing is due.

    ``told`` are the authorities that clients have been told to trust: nothing is signed by another one, unless the
    certificate is of no use as it is. Raises :class:`CertificateError` for a bundle that cannot be read; nothing is
    lost by replacing it with :func:`create`.
    """
    authorities, certificate = _certificates(bundle.authorities), _certificates(bundle.certificate)[0]
    newest, authority_key = authorities[0], _authority_key(bundle)
    useless = not _is_timely(certificate, now) or not _covers(certificate, hosts)
    if _is_due(newest, now) or not _is_timely(newest, now):
        fresh, fresh_key = _authority(hosts[0], now)
        trusted = [fresh, *(old for old in authorities if _is_timely(old, now))]
        with_fresh = replace(bundle, authorities="".join(map(_pem, trusted)), authority_key=_key_pem(fresh_key))
        # Where nothing works anyhow there is nobody to be told first.
        return renewed(with_fresh, hosts, now, told) if useless else with_fresh
    due = _is_due(certificate, now) or not _is_signed_by(certificate, newest)
    if useless or (due and _pem(newest) in told):
        serving, key = _serving(newest, authority_key, hosts, now)
        return replace(bundle, certificate=serving, key=key)
    if len(authorities) > 1 and any(old.not_valid_after_utc <= now for old in authorities):
        return replace(bundle, authorities="".join(_pem(old) for old in authorities if old.not_valid_after_utc > now))
    return bundle


def check(bundle: Bundle) -> None:
    """Raises :class:`CertificateError` unless key and certificate belong together and the authorities are readable."""
    certificate = _certificates(bundle.certificate)[0]
    _certificates(bundle.authorities)
    try:
        key = serialization.load_pem_private_key(bundle.key.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError(f"the private key cannot be read: {error}") from error
    if key.public_key() != certificate.public_key():
        raise CertificateError("the private key does not belong to the certificate; replace both together")


def untimely(bundle: Bundle, now: datetime) -> str | None:
    """Why the serving certificate cannot be used at this time, ``None`` if it can. Raises :class:`CertificateError`."""
    certificate = _certificates(bundle.certificate)[0]
    if certificate.not_valid_before_utc > now:
        return f"the certificate is valid only from {certificate.not_valid_before_utc.isoformat()} on"
    if certificate.not_valid_after_utc <= now:
        return f"the certificate ended at {certificate.not_valid_after_utc.isoformat()}"
    return None


def is_trusted(bundle: Bundle, authorities: str) -> bool:
    """Whether who trusts ``authorities`` trusts the serving certificate. Raises :class:`CertificateError`."""
    certificate = _certificates(bundle.certificate)[0]
    return any(_is_signed_by(certificate, authority) for authority in _certificates(authorities))


def united(*authorities: str) -> str:
    """All authorities, each once, the first ones first. Raises :class:`CertificateError`."""
    return "".join(dict.fromkeys(_pem(one) for text in authorities if text for one in _certificates(text)))


def expiry(bundle: Bundle) -> datetime:
    """When the serving certificate ends. Raises :class:`CertificateError`."""
    return _certificates(bundle.certificate)[0].not_valid_after_utc


def service_hosts(service: str, namespace: str) -> list[str]:
    """Names under which the API server calls a Service; the longest is the subject, as it always was."""
    return [f"{service}.{namespace}.svc", f"{service}.{namespace}", service]


# Making


def _authority(subject: str, now: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    # The serial in the name keeps two generations apart for clients that look issuers up by name.
    serial = x509.random_serial_number()
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, subject[:64]),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, f"{serial:x}"[:16]),
        ]
    )
    builder = _builder(name, name, key.public_key(), serial, now, AUTHORITY_LIFE)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(authority=True), critical=True)
    return builder.sign(key, hashes.SHA256()), key


def _serving(
    authority: x509.Certificate, authority_key: CertificateIssuerPrivateKeyTypes, hosts: Sequence[str], now: datetime
) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    life = min(SERVING_LIFE, authority.not_valid_after_utc - now)
    builder = _builder(name, authority.subject, key.public_key(), x509.random_serial_number(), now, life)
    builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(authority=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return _pem(builder.sign(authority_key, hashes.SHA256())), _key_pem(key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, serial: int, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(serial)
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + life)
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=not authority, key_encipherment=not authority,
        key_cert_sign=authority, crl_sign=authority, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


# Reading


def _certificates(pem: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem.encode())
    except ValueError as error:
        raise CertificateError(f"not a PEM certificate: {error}") from error


def _authority_key(bundle: Bundle) -> CertificateIssuerPrivateKeyTypes:
    try:
        key = serialization.load_pem_private_key(bundle.authority_key.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError(f"the authority's private key cannot be read: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError("the authority's private key is not one that was made here")
    return key


def _is_due(certificate: x509.Certificate, now: datetime) -> bool:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return now >= certificate.not_valid_before_utc + life * RENEW_AFTER


def _is_timely(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _covers(certificate: x509.Certificate, hosts: Sequence[str]) -> bool:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return all(_host(host) in names for host in hosts)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return pem.decode()


def utc_now() -> datetime:
    """The present moment; the one clock of this room, handed in everywhere else."""
    return datetime.now(UTC)
