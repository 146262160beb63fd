"""TLS of the listeners, with certificates that can be exchanged while they serve (spec 07 section 2.1)."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import Final

from stromboli.webhooks.certificates import Bundle, CertificateError

TLS_1_2_CIPHERS: Final = "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"


class ReloadableTls:
    """A server context whose certificate is that of the latest :meth:`load`.

    Every handshake is pointed at the present context; connections that exist keep theirs. (Loading a second certificate
    into one context would leave the first in place wherever the two keys are of different types.)
    """

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self._current = _context(bundle)
        self.context = _context(bundle)
        self.context.sni_callback = self._point

    def load(self, bundle: Bundle) -> None:
        """Use ``bundle`` for handshakes from now on. Raises ``CertificateError`` and changes nothing if it is bad."""
        self._current = _context(bundle)
        self.bundle = bundle

    def _point(self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        connection.context = self._current


def _context(bundle: Bundle) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(TLS_1_2_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    # The library takes a chain from files only; they live no longer than this block.
    with tempfile.TemporaryDirectory(prefix="stromboli-") as directory:
        certificate, key = Path(directory, "tls.crt"), Path(directory, "tls.key")
        key.touch(mode=0o600)
        certificate.write_text(bundle.certificate)
        key.write_text(bundle.key)
        try:
            context.load_cert_chain(certificate, key)
        except (ssl.SSLError, OSError) as error:
            raise CertificateError(f"certificate and key cannot be used: {error}") from error
    return context
