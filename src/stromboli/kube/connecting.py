"""From a kubeconfig, a server address or a pod's service account to an authenticated HTTP session.

This is the only place that knows kubernetes-asyncio. It supplies what is years of other people's bug reports:
kubeconfig merging, exec plugins, OIDC and GCP tokens, service account tokens, TLS. It is imported when a connection
is made, not before: it costs half a second that ``--help`` should not pay.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from stromboli.kube.errors import ConfigurationError
from stromboli.kube.exchanging import Exchanges

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config.kube_config import KubeConfigLoader

TOKEN_CHECK_SECONDS = 60.0
CREDENTIALS_TIMEOUT = 30.0
MAX_CONNECTIONS = 256
DEFAULT_KUBECONFIG = "~/.kube/config"


class Credentials:
    """The ``Authorization`` header, kept fresh.

    ``refresh`` re-reads the source of the credentials (token file, exec plugin, identity provider). It runs at most
    once a minute on its own when the source is one that changes, and once after a 401.
    """

    def __init__(self, configuration: Configuration | None, refresh: Callable[[], Awaitable[None]] | None) -> None:
        self._configuration = configuration
        self._refresh = refresh
        self._rotating = False
        self._checked = time.monotonic()
        self._lock = asyncio.Lock()

    @classmethod
    def none(cls) -> Credentials:
        """No authentication."""
        return cls(None, None)

    def rotating(self) -> Credentials:
        """The same credentials, re-read once a minute."""
        self._rotating = True
        return self

    async def header(self) -> str | None:
        """Value of the Authorization header, or ``None``. Raises :class:`ConfigurationError` if a refresh fails."""
        if self._configuration is None:
            return None
        if self._rotating and time.monotonic() - self._checked >= TOKEN_CHECK_SECONDS:
            await self.renew(older_than=TOKEN_CHECK_SECONDS)
        return await _bearer(self._configuration)

    async def renew(self, *, older_than: float = 0.0) -> bool:
        """Fetch the credentials anew unless somebody just did; returns whether there may be new ones."""
        if self._refresh is None:
            return False
        async with self._lock:
            if time.monotonic() - self._checked < older_than:
                return True
            self._checked = time.monotonic()
            await self._refresh()
            return True


@dataclass(slots=True)
class Connection:
    """Everything needed to send a request: session (TLS included), address, credentials, proxy.

    ``exchanges`` are connections of their own for writes; ``None`` where writes take the session as well.
    """

    session: aiohttp.ClientSession
    base: URL
    credentials: Credentials
    server_hostname: str | None = None
    proxy: str | None = None
    exchanges: Exchanges | None = None

    async def close(self) -> None:
        """Close the session and all connections."""
        if self.exchanges is not None:
            self.exchanges.close()
        await self.session.close()


async def connect(
    *, kubeconfig: str | None = None, master: str | None = None, context: str | None = None
) -> Connection:
    """Connect as the flags, the environment and the files say.

    Order: the ``kubeconfig`` argument, ``master`` alone (no authentication), ``$KUBECONFIG``, ``~/.kube/config``, the
    pod's service account. ``master`` replaces the server address of a kubeconfig. Nothing is sent yet.

    Raises :class:`ConfigurationError` with one line saying what is missing and what to do.
    """
    if kubeconfig:
        return await _from_kubeconfig(kubeconfig, context, master, origin="--kubeconfig")
    if master:
        return _without_authentication(master)
    if os.environ.get("KUBECONFIG"):
        return await _from_kubeconfig(os.environ["KUBECONFIG"], context, None, origin="$KUBECONFIG")
    if os.path.exists(os.path.expanduser(DEFAULT_KUBECONFIG)):  # noqa: ASYNC240 - once, before any work
        return await _from_kubeconfig(DEFAULT_KUBECONFIG, context, None, origin=DEFAULT_KUBECONFIG)
    return _from_service_account()


def _without_authentication(master: str) -> Connection:
    configuration = _new_configuration()
    configuration.host = _address(master)
    return _open(configuration, Credentials.none())


def _from_service_account() -> Connection:
    from kubernetes_asyncio.config import ConfigException, load_incluster_config

    configuration = _new_configuration()
    try:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        raise ConfigurationError(
            "no cluster to talk to: no --kubeconfig or --master, $KUBECONFIG is not set, there is no "
            f"{DEFAULT_KUBECONFIG}, and this is not a pod with a service account ({error}); pass --kubeconfig"
        ) from error

    async def reread() -> None:
        # The library re-reads the mounted token itself when it is a minute old.
        await _bearer(configuration)

    return _open(configuration, Credentials(configuration, reread))


async def _from_kubeconfig(path: str, context: str | None, master: str | None, *, origin: str) -> Connection:
    _check_files(path, origin)
    configuration = _new_configuration()
    loader = await _load(path, context, configuration, origin)
    if master:
        configuration.host = _address(master)
    _check_server(configuration, path, origin)

    async def reload() -> None:
        fresh = _new_configuration()
        await _load(path, context, fresh, origin)
        configuration.api_key = fresh.api_key

    credentials = Credentials(configuration, reload)
    return _open(configuration, credentials.rotating() if _changes_by_itself(loader) else credentials)


def _check_files(path: str, origin: str) -> None:
    names = [Path(name).expanduser() for name in path.split(os.pathsep) if name]
    if not any(name.exists() for name in names):
        raise ConfigurationError(f"{origin}: no such file: {path}; pass the path of an existing kubeconfig")
    for name in names:
        if name.exists() and not (name.is_file() and os.access(name, os.R_OK)):
            raise ConfigurationError(f"{origin}: cannot read {name}; it must be a file that this user may read")


async def _load(path: str, context: str | None, configuration: Configuration, origin: str) -> KubeConfigLoader:
    import yaml
    from kubernetes_asyncio.config import ConfigException
    from kubernetes_asyncio.config.kube_config import KubeConfigLoader, KubeConfigMerger

    try:
        merged = KubeConfigMerger(path).config
    except (yaml.YAMLError, OSError, AttributeError, TypeError, KeyError, ValueError) as error:
        raise ConfigurationError(f"{origin}: {path} is not a kubeconfig: {_one_line(error)}; check the file") from error
    _check_context(merged, context, path, origin)
    try:
        loader = KubeConfigLoader(merged, active_context=context, config_base_path=None)
        async with asyncio.timeout(CREDENTIALS_TIMEOUT):
            await loader.load_and_set(configuration)
    except TimeoutError as error:
        raise ConfigurationError(
            f"{origin}: {path}: the user's exec plugin or identity provider did not answer within "
            f"{CREDENTIALS_TIMEOUT:g} s; try the same with kubectl"
        ) from error
    except AssertionError as error:  # the library's word for an empty cluster or context
        raise ConfigurationError(f"{origin}: {path}: clusters[].cluster.server is missing; add the address") from error
    except (ConfigException, OSError, AttributeError, TypeError, KeyError, ValueError) as error:
        raise ConfigurationError(f"{origin}: {path}: {_one_line(error)}; check the file") from error
    return loader


def _check_context(merged: Any, context: str | None, path: str, origin: str) -> None:
    if merged is None or not isinstance(merged.value, dict):
        raise ConfigurationError(f"{origin}: {path} is empty; it must be a kubeconfig")
    wanted = context or merged.value.get("current-context")
    names = [str(node.value.get("name")) for node in merged.value.get("contexts") or []]
    known = f"contexts: {', '.join(names)}" if names else "it has no contexts"
    if not wanted:
        raise ConfigurationError(
            f"{origin}: {path} has no current-context ({known}); set one with 'kubectl config use-context' or name one"
        )
    if wanted not in names:
        field = "context" if context else "current-context"
        raise ConfigurationError(f"{origin}: {path}: {field} {wanted!r} does not exist ({known}); choose another")


def _check_server(configuration: Configuration, path: str, origin: str) -> None:
    if not configuration.host or urlsplit(configuration.host).scheme not in {"http", "https"}:
        raise ConfigurationError(f"{origin}: {path}: clusters[].cluster.server must be an http:// or https:// address")


def _changes_by_itself(loader: KubeConfigLoader) -> bool:
    """Token files and identity providers rotate; an exec plugin says when its token ends, and a 401 covers the rest."""
    user = getattr(loader, "_user", None)
    if user is None:
        return False
    return bool("tokenFile" in user or "auth-provider" in user or hasattr(loader, "exec_plugin_expiry"))


def _address(master: str) -> str:
    address = master if "://" in master else f"http://{master}"
    if not urlsplit(address).hostname:
        raise ConfigurationError(f"--master: {master!r} is not an address; give one like https://10.0.0.1:6443")
    return address.rstrip("/")


def _new_configuration() -> Configuration:
    from kubernetes_asyncio.client import Configuration

    configuration = Configuration()
    configuration.host = ""
    configuration.connection_pool_maxsize = MAX_CONNECTIONS
    return configuration


def _open(configuration: Configuration, credentials: Credentials) -> Connection:
    from kubernetes_asyncio.client.rest import RESTClientObject

    try:
        rest = RESTClientObject(configuration)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigurationError(f"cannot use the configured certificates: {_one_line(error)}") from error
    # The library's session reads ~/.netrc in a thread for every request (trust_env); only its connector is wanted.
    connector = rest.pool_manager.connector
    rest.pool_manager.detach()
    session = aiohttp.ClientSession(connector=connector, trust_env=False, read_bufsize=2**18, auto_decompress=True)
    base = URL(configuration.host or "")
    server_hostname = configuration.tls_server_name or None
    proxy = configuration.proxy or _proxy_from_environment(base.scheme, base.host or "")
    return Connection(
        session=session,
        base=base,
        credentials=credentials,
        server_hostname=server_hostname,
        proxy=proxy,
        exchanges=None if proxy else _exchanges(base, getattr(connector, "_ssl", None), server_hostname),
    )


def _exchanges(base: URL, tls: object, server_hostname: str | None) -> Exchanges | None:
    """Connections for writes, with the TLS settings that the library made for its own."""
    if base.scheme == "https" and not isinstance(tls, ssl.SSLContext):
        return None
    return Exchanges(
        base.host or "",
        base.port or 0,
        tls=tls if base.scheme == "https" and isinstance(tls, ssl.SSLContext) else None,
        server_hostname=server_hostname,
        limit=MAX_CONNECTIONS,
    )


def _proxy_from_environment(scheme: str, host: str) -> str | None:
    if urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(scheme)


async def _bearer(configuration: Configuration) -> str | None:
    header = await configuration.get_api_key_with_prefix("BearerToken")
    # A token file's trailing newline would otherwise end up in a header.
    return header.strip() if isinstance(header, str) else None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
