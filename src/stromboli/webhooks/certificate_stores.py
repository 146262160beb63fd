"""Where certificates are kept: in a Secret that all replicas share, in a directory, in memory, or mounted by others.

A store of ours can be loaded and saved; saving answers what is then stored, which is another replica's bundle where
that one was faster. Mounted certificates can only be loaded.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
from pathlib import Path
from typing import Final, Protocol

from stromboli.api import kinds
from stromboli.kube.client import Client
from stromboli.kube.errors import AlreadyExists, Conflict, NotFound
from stromboli.kube.json import JsonObject
from stromboli.webhooks.certificates import Bundle, CertificateError

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
AUTHORITIES: Final = "ca.crt"
AUTHORITY_KEY: Final = "ca.key"


class CertificateStore(Protocol):
    """Where a server's own certificates live."""

    async def load(self) -> Bundle | None:
        """What is stored, ``None`` for nothing. Raises ``CertificateError`` for what cannot be read."""

    async def save(self, bundle: Bundle) -> Bundle:
        """Store ``bundle`` and answer what is stored: another one if somebody else stored since the last load."""


class MemoryStore:
    """Forgets everything when the process ends. For one process on one machine."""

    def __init__(self) -> None:
        self._bundle: Bundle | None = None

    async def load(self) -> Bundle | None:
        """What was saved."""
        return self._bundle

    async def save(self, bundle: Bundle) -> Bundle:
        """Keep ``bundle``."""
        self._bundle = bundle
        return bundle


class DirectoryStore:
    """Four files in a directory that only the owner can read."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def load(self) -> Bundle | None:
        """The files' content; ``None`` unless all four are there."""
        return await asyncio.to_thread(self._load)

    async def save(self, bundle: Bundle) -> Bundle:
        """Write the files, each replaced in one go. Raises ``CertificateError`` where that is impossible."""
        try:
            await asyncio.to_thread(self._save, bundle)
        except OSError as error:
            raise CertificateError(f"cannot write certificates to {self._directory}: {error.strerror}") from error
        return bundle

    def _load(self) -> Bundle | None:
        try:
            texts = [(self._directory / name).read_text() for name in (AUTHORITIES, CERTIFICATE, KEY, AUTHORITY_KEY)]
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CertificateError(f"cannot read certificates in {self._directory}: {error}") from error
        return Bundle(*texts)

    def _save(self, bundle: Bundle) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        texts = _texts(bundle)
        for name, text in texts.items():
            temporary = self._directory / f".{name}.new"
            temporary.touch(mode=0o600)
            temporary.write_text(text)
            os.replace(temporary, self._directory / name)


class SecretStore:
    """A Secret, shared by all replicas. The first replica to write wins, the others take what it wrote."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._namespace, self._name = namespace, name
        self._secret: JsonObject | None = None

    async def load(self) -> Bundle | None:
        """The Secret's content; ``None`` where it does not exist or lacks one of the four keys.

        Also a Secret without ``ca.key`` counts as nothing: it was made by another installer and cannot be renewed here.
        """
        try:
            self._secret = await self._client.get(kinds.SECRETS, self._name, self._namespace)
        except NotFound:
            self._secret = None
            return None
        data = self._secret.get("data") or {}
        if any(name not in data for name in (AUTHORITIES, CERTIFICATE, KEY, AUTHORITY_KEY)):
            return None
        return Bundle(*(self._decoded(data, name) for name in (AUTHORITIES, CERTIFICATE, KEY, AUTHORITY_KEY)))

    async def save(self, bundle: Bundle) -> Bundle:
        """Write the Secret as it was loaded, changed; on a conflict answer what the other writer stored."""
        try:
            await self._write(bundle)
        except (Conflict, AlreadyExists, NotFound) as error:
            stored = await self.load()
            if stored is None:
                raise CertificateError(f"the Secret {self._namespace}/{self._name} changed while written") from error
            return stored
        return bundle

    async def _write(self, bundle: Bundle) -> None:
        data = {name: base64.b64encode(text.encode()).decode() for name, text in _texts(bundle).items()}
        if self._secret is None:
            metadata = {"name": self._name, "namespace": self._namespace}
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
            self._secret = await self._client.create(kinds.SECRETS, secret)
        else:
            secret = {**self._secret, "data": {**(self._secret.get("data") or {}), **data}}
            self._secret = await self._client.update(kinds.SECRETS, secret)

    def _decoded(self, data: JsonObject, name: str) -> str:
        try:
            return base64.b64decode(data[name], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError, TypeError) as error:
            raise CertificateError(
                f"{name} of Secret {self._namespace}/{self._name} cannot be read: {error}"
            ) from error


def _texts(bundle: Bundle) -> dict[str, str]:
    return {
        AUTHORITIES: bundle.authorities,
        CERTIFICATE: bundle.certificate,
        KEY: bundle.key,
        AUTHORITY_KEY: bundle.authority_key,
    }


class MountedCertificates:
    """Three files that somebody else puts there and renews, for example a mounted Secret."""

    def __init__(self, authorities: Path, certificate: Path, key: Path) -> None:
        self._authorities, self._certificate, self._key = authorities, certificate, key

    async def load(self) -> Bundle:
        """The files' present content. Raises ``CertificateError`` for the first that cannot be read."""
        return await asyncio.to_thread(self._load)

    def _load(self) -> Bundle:
        authorities = _read(self._authorities, "cacert file")
        certificate = _read(self._certificate, "cert file")
        return Bundle(authorities, certificate, _read(self._key, "key file"))


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CertificateError(f"failed to read {what} ({path}): {reason}") from error
