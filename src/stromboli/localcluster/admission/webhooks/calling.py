"""The call itself: HTTPS with the webhook's own CA, to a URL or to a Service.

A Service's address comes from the map given at start (``--service-address ns/name=host:port``), else from its
Endpoints. The certificate must be for ``NAME.NAMESPACE.svc`` as in a real cluster. Errors read as kube-apiserver's do,
since people search for them.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from stromboli.api import kinds
from stromboli.localcluster.admission.webhooks.matching import Hook
from stromboli.localcluster.nodes.kubelets import POD_NETWORK
from stromboli.localcluster.storage import Key, Store

MAX_ANSWER = 8 * 1024 * 1024


class CallFailed(Exception):
    """A webhook that could not be asked; the message is what follows ``failed to call webhook:``."""


@dataclass(frozen=True, slots=True)
class Target:
    """``shown`` is the URL that messages name, ``url`` the one that is called; ``host`` is whom TLS must prove."""

    shown: str
    url: str
    host: str


class ServiceAddresses:
    """Where Services really listen: outside of a cluster there is no cluster network."""

    def __init__(self, store: Store, known: Mapping[tuple[str, str], str] | None = None) -> None:
        self._store = store
        self._known = dict(known or {})

    def find(self, namespace: str, name: str, port: int) -> str:
        """``host:port`` behind a Service. Raises :class:`CallFailed` when there is none."""
        fixed = self._known.get((namespace, name))
        if fixed is not None:
            return fixed
        service = self._store.get(Key.of(kinds.SERVICES, namespace, name))
        if service is None:
            raise CallFailed(f'service "{name}" not found')
        ports = [one for one in service.object["spec"].get("ports") or () if one.get("port") == port]
        if not ports:
            raise CallFailed(f'no service port {port} found for service "{name}"')
        endpoints = self._store.get(Key.of(kinds.ENDPOINTS, namespace, name))
        for subset in endpoints.object.get("subsets") or () if endpoints else ():
            for address in subset.get("addresses") or ():
                for candidate in subset.get("ports") or ():
                    if candidate.get("name", "") == ports[0].get("name", ""):
                        return _routable(address["ip"], candidate["port"])
        raise CallFailed(f'no endpoints available for service "{name}"')


class Caller:
    """Asks webhooks; one HTTP session for all of them. Use as an async context manager."""

    def __init__(self, addresses: ServiceAddresses) -> None:
        self._addresses = addresses
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, hook: Hook, body: bytes) -> bytes:
        """Post a review and return the answer's body. Raises :class:`CallFailed`."""
        shown = _shown(hook)
        try:
            target = self._target(hook, shown)
            context = _context(hook.client_config.get("caBundle") or "")
            async with asyncio.timeout(hook.timeout):
                return await self._post_twice(target, body, context)
        except _StatusFailure:
            raise
        except CallFailed as error:
            raise CallFailed(_posted(shown, str(error))) from error
        except TimeoutError as error:
            raise CallFailed(_posted(shown, "context deadline exceeded")) from error
        except (aiohttp.ClientError, OSError, ssl.SSLError) as error:
            raise CallFailed(_posted(shown, _cause(error))) from error

    async def _post_twice(self, target: Target, body: bytes, context: ssl.SSLContext) -> bytes:
        """Post; once more when a kept connection turns out to be dead (the webhook was restarted meanwhile)."""
        try:
            return await self._post(target, body, context)
        except (aiohttp.ServerDisconnectedError, ConnectionResetError, BrokenPipeError):
            return await self._post(target, body, context)

    async def _post(self, target: Target, body: bytes, context: ssl.SSLContext) -> bytes:
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=False, cookie_jar=aiohttp.DummyCookieJar())
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Host": target.host}
        async with self._session.post(
            target.url, data=body, headers=headers, ssl=context, server_hostname=target.host, allow_redirects=False
        ) as response:
            answer = await response.content.read(MAX_ANSWER)
            if response.status != 200:
                raise _StatusFailure(response.status, answer)
            return answer

    def _target(self, hook: Hook, shown: str) -> Target:
        config = hook.client_config
        service = config.get("service")
        if not service:
            return Target(shown, shown, urlsplit(shown).hostname or "")
        port = int(service.get("port") or 443)
        address = self._addresses.find(service["namespace"], service["name"], port)
        parts = urlsplit(shown)
        return Target(shown, f"https://{address}{parts.path}?{parts.query}", parts.hostname or "")


class _StatusFailure(CallFailed):
    """An HTTP answer other than 200; its text stands without ``Post "..."``, as a client library would say it."""

    def __init__(self, status: int, answer: bytes) -> None:
        if status == 404:
            text = "the server could not find the requested resource"
        elif status >= 500:
            shown = answer[:200].decode("utf-8", "replace").strip()
            text = f'an error on the server ("{shown}") has prevented the request from succeeding'
        else:
            text = f"the server responded with the status code {status} but did not return more information"
        super().__init__(text)


def _routable(address: str, port: int) -> str:
    """``address:port``, unless the address is a simulated pod's: better to say so than to wait for it."""
    if ipaddress.ip_address(address) in POD_NETWORK:
        raise CallFailed(
            f"dial tcp {address}:{port}: connect: no route to host (the pod is simulated; "
            "name the process that really serves it with --service-address)"
        )
    return f"{address}:{port}"


def _shown(hook: Hook) -> str:
    config = hook.client_config
    service = config.get("service")
    if service:
        port = int(service.get("port") or 443)
        path = str(service.get("path") or "/")
        base = f"https://{service['name']}.{service['namespace']}.svc:{port}/{path.lstrip('/')}"
    else:
        base = str(config.get("url") or "")
    return f"{base}{'&' if '?' in base else '?'}timeout={hook.timeout}s"


def _posted(shown: str, why: str) -> str:
    return f'Post "{shown}": {why}'


def _cause(error: Exception) -> str:
    """An error in the words of kube-apiserver's HTTP client, where there is a counterpart."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_certificate_problem(error)}"
    if isinstance(error, aiohttp.ClientConnectorDNSError | socket.gaierror):
        host = getattr(error, "host", "")
        return f"dial tcp: lookup {host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        why = error.os_error
        if isinstance(why, ConnectionRefusedError):
            return f"dial tcp {error.host}:{error.port}: connect: connection refused"
        if isinstance(why, ConnectionResetError):
            return f"read tcp {error.host}:{error.port}: connection reset by peer"
        return f"dial tcp {error.host}:{error.port}: {why.strerror or why}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error) or type(error).__name__


def _certificate_problem(error: Exception) -> str:
    inner: Any = getattr(error, "certificate_error", error)
    reason = str(getattr(inner, "verify_message", "") or inner)
    if "self-signed" in reason or "self signed" in reason or "unable to get local issuer" in reason:
        return "certificate signed by unknown authority"
    if "expired" in reason:
        return "certificate has expired or is not yet valid"
    return reason


@lru_cache(maxsize=64)
def _context(ca_bundle: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_bundle:
        try:
            authorities = base64.b64decode(ca_bundle, validate=True).decode("ascii")
            context = ssl.create_default_context(cadata=authorities)
        except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
            raise CallFailed("unable to load root certificates: unable to parse bytes as PEM block") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
