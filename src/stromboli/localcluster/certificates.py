"""The embedded cluster's own certificate authority, its serving and client certificates, and the token signing key.

Everything is kept in one directory, so that a kubeconfig stays valid over restarts; what is missing, expires within 30
days or does not belong together is made again.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALIDITY = timedelta(days=3650)
RENEWAL = timedelta(days=30)
SERVICE_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the cluster shows and trusts."""

    ca: Identity
    serving: Identity
    admin: Identity
    signing_key: ec.EllipticCurvePrivateKey
    admin_token: str
    directory: Path

    def server_context(self) -> ssl.SSLContext:
        """TLS 1.2+ for the listener; client certificates of our CA are accepted, none is required."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.directory / "apiserver.crt", self.directory / "apiserver.key")
        context.load_verify_locations(cadata=self.ca.certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


def load_or_make(directory: Path, hosts: Sequence[str] = ("127.0.0.1",)) -> Credentials:
    """The credentials kept in ``directory``, completed where needed. Raises OSError when it cannot be written."""
    directory.mkdir(parents=True, exist_ok=True)
    ca = _read(directory, "ca")
    if ca is None or not _fresh(ca.certificate):
        ca = make_ca("stromboli-localcluster")
        _write(directory, "ca", ca)
    serving = _read(directory, "apiserver")
    if serving is None or not _usable(serving, ca, hosts):
        serving = issue(ca, "kube-apiserver", hosts=[*hosts, *SERVICE_NAMES])
        _write(directory, "apiserver", serving)
    admin = _read(directory, "admin")
    if admin is None or not _usable(admin, ca, ()):
        admin = issue(ca, "kubernetes-admin", organization="system:masters")
        _write(directory, "admin", admin)
    return Credentials(ca, serving, admin, _signing_key(directory), _admin_token(directory), directory)


def make_ca(name: str) -> Identity:
    """A new certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        _builder(subject, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return _identity(builder.sign(key, hashes.SHA256()), key)


def issue(ca: Identity, name: str, *, organization: str = "", hosts: Sequence[str] = ()) -> Identity:
    """A certificate of ``ca``: for serving when ``hosts`` are given, else for a client."""
    key = ec.generate_private_key(ec.SECP256R1())
    ca_key = _private_key(ca.key)
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organization:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    issuer = x509.load_pem_x509_certificate(ca.certificate)
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = (
        _builder(x509.Name(parts), issuer.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    )
    if hosts:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False
        )
    return _identity(builder.sign(ca_key, hashes.SHA256()), key)


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner reads, in one step: readers see the old content or the new."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + VALIDITY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _identity(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Identity:
    return Identity(certificate.public_bytes(serialization.Encoding.PEM), _key_bytes(key))


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not an elliptic curve key")
    return key


def _read(directory: Path, name: str) -> Identity | None:
    try:
        identity = Identity((directory / f"{name}.crt").read_bytes(), (directory / f"{name}.key").read_bytes())
        certificate = x509.load_pem_x509_certificate(identity.certificate)
        matches = certificate.public_key() == _private_key(identity.key).public_key()
    except (FileNotFoundError, ValueError):
        return None
    return identity if matches else None


def _write(directory: Path, name: str, identity: Identity) -> None:
    write_private(directory / f"{name}.key", identity.key)
    write_private(directory / f"{name}.crt", identity.certificate)


def _fresh(pem: bytes) -> bool:
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc > datetime.now(UTC) + RENEWAL


def _usable(identity: Identity, ca: Identity, hosts: Sequence[str]) -> bool:
    certificate = x509.load_pem_x509_certificate(identity.certificate)
    try:
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(ca.certificate))
    except Exception:  # cryptography raises several unrelated types here, and all mean: not ours
        return False
    if hosts:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        if not {_general_name(host) for host in hosts} <= set(names):
            return False
    return _fresh(identity.certificate)


def _signing_key(directory: Path) -> ec.EllipticCurvePrivateKey:
    path = directory / "serviceaccounts.key"
    try:
        return _private_key(path.read_bytes())
    except (FileNotFoundError, ValueError):
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(path, _key_bytes(key))
        return key


def _admin_token(directory: Path) -> str:
    path = directory / "token"
    try:
        token = path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        token = ""
    if not token:
        token = secrets.token_urlsafe(32)
        write_private(path, token.encode() + b"\n")
    return token
