"""A throw-away authority with a server certificate for loopback and a client certificate."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test-ca")])
        self._certificate = self._sign(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.path = self._write("ca.crt", self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> Pair:
        """A certificate for ``name``, good for 127.0.0.1."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        certificate = self._sign(subject, key, usage, address)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Pair(
            self._write(f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM)),
            self._write(f"{name}.key", pem),
        )

    def server_context(self, *, wants_client: bool = False) -> ssl.SSLContext:
        """For a server on loopback; with ``wants_client`` it wants a certificate of this authority from its clients."""
        pair = self.issue("server")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.path))
        context.load_cert_chain(pair.certificate, pair.key)
        context.verify_mode = ssl.CERT_REQUIRED if wants_client else ssl.CERT_NONE
        return context

    def _sign(self, subject: x509.Name, key: Key, *extensions: x509.ExtensionType) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name: str, content: bytes) -> Path:
        path = self._directory / name
        path.write_bytes(content)
        return path
