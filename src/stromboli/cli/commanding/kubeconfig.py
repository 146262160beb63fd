"""Which cluster to talk to, and as whom: kubeconfig files read without a client library, so that commands start fast.

Order (spec 08 section 1): ``--kubeconfig``, the files of ``$KUBECONFIG``, ``~/.kube/config``; ``--master`` replaces the
server; without any configuration the pod's service account, then ``$KUBERNETES_MASTER``, then ``http://localhost:8080``.
Certificates, tokens, token files, passwords and exec plugins are handled here; identity providers (``auth-provider``)
are left to :mod:`stromboli.kube.connecting`, which takes longer to load.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stromboli.kube.errors import ConfigurationError

Entry = dict[str, Any]
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_SECONDS = 60.0
DEFAULT_SERVER = "http://localhost:8080"
NO_KUBECONFIG = "there is no kubeconfig: give --kubeconfig, set KUBECONFIG, or put one at ~/.kube/config"


@dataclass(frozen=True)
class Target:
    """An API server and the credentials for it. Certificates and keys are PEM."""

    server: str
    ca: bytes = b""
    certificate: bytes = b""
    key: bytes = b""
    authorization: str = ""
    verify: bool = True
    server_name: str = ""
    namespace: str = ""
    hint: str = ""
    """What to look at when the server does not answer; empty for the usual."""


def find(kubeconfig: str, master: str, environment: Mapping[str, str]) -> Target:
    """The target that flags, environment and files name. Raises ConfigurationError with one line."""
    paths = _paths(kubeconfig, environment)
    if paths:
        origin = "--kubeconfig" if kubeconfig else "$KUBECONFIG" if environment.get("KUBECONFIG") else "kubeconfig"
        return _from_files(paths, master, environment, origin)
    if master:
        return Target(_address(master))
    if (SERVICE_ACCOUNT / "token").exists() and environment.get("KUBERNETES_SERVICE_HOST"):
        return _from_pod(environment)
    if environment.get("KUBERNETES_MASTER"):
        return Target(_address(environment["KUBERNETES_MASTER"]))
    return Target(DEFAULT_SERVER, hint=NO_KUBECONFIG)


def _paths(kubeconfig: str, environment: Mapping[str, str]) -> list[Path]:
    if kubeconfig:
        return _existing("--kubeconfig", [kubeconfig])
    listed = environment.get("KUBECONFIG")
    if listed:
        return _existing("$KUBECONFIG", [name for name in listed.split(os.pathsep) if name])
    home = Path(environment.get("HOME") or Path.home()) / ".kube" / "config"
    return [home] if home.exists() else []


def _existing(origin: str, names: Sequence[str]) -> list[Path]:
    found = [path for name in names if (path := Path(name).expanduser()).exists()]
    if not found:
        raise ConfigurationError(f"{origin}: no such file: {os.pathsep.join(names)}; pass an existing kubeconfig")
    return found


def _from_files(paths: Sequence[Path], master: str, environment: Mapping[str, str], origin: str) -> Target:
    merged = _merge([_read(path) for path in paths])
    where = f"{origin}: {os.pathsep.join(map(str, paths))}"
    context = _named(merged, "contexts", merged.get("current-context"), "context", f"{where}: current-context")
    cluster = _named(merged, "clusters", context.get("cluster"), "cluster", f"{where}: contexts[].context.cluster")
    user = _named(merged, "users", context.get("user"), "user", f"{where}: contexts[].context.user")
    server = master or cluster.get("server")
    if not isinstance(server, str) or not server:
        raise ConfigurationError(f"{where}: clusters[].cluster.server is missing; add the address")
    target = Target(
        server=_address(server),
        ca=_bytes(cluster, "certificate-authority", where),
        certificate=_bytes(user, "client-certificate", where),
        key=_bytes(user, "client-key", where),
        verify=not cluster.get("insecure-skip-tls-verify"),
        server_name=str(cluster.get("tls-server-name") or ""),
        namespace=str(context.get("namespace") or ""),
    )
    return _authenticated(target, user, where, paths, environment)


def _read(path: Path) -> Entry:
    import yaml

    try:
        loaded = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except OSError as error:
        raise ConfigurationError(f"kubeconfig {path}: cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"kubeconfig {path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(loaded, dict):
        what = "is empty" if loaded is None else "is no map"
        raise ConfigurationError(f"kubeconfig {path} {what}; it must have clusters, users and contexts")
    for section in ("clusters", "users", "contexts"):
        if not isinstance(loaded.get(section) or [], list):
            raise ConfigurationError(f"kubeconfig {path}: {section} is no list; check the file")
    for section, body in (("clusters", "cluster"), ("users", "user")):
        for entry in loaded.get(section) or []:
            _resolve(entry.get(body) if isinstance(entry, dict) else None, path.parent)
    return loaded


_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def _resolve(body: object, directory: Path) -> None:
    """File names in a kubeconfig are relative to the file that they stand in."""
    for field in _FILES if isinstance(body, dict) else ():
        if isinstance(body, dict) and isinstance(body.get(field), str) and body[field]:
            body[field] = str(directory / body[field])


def _merge(files: Sequence[Entry]) -> Entry:
    """The first file to set a value wins, as for kubectl."""
    merged: Entry = {}
    for file in files:
        for key, value in file.items():
            if isinstance(value, list):
                merged[key] = [*merged.get(key, []), *value]
            elif not merged.get(key):
                merged[key] = value
    return merged


def _named(merged: Entry, section: str, name: object, body: str, where: str) -> Entry:
    entries = [entry for entry in merged.get(section) or [] if isinstance(entry, dict)]
    if not name and section == "users":
        return {}
    known = ", ".join(str(entry.get("name")) for entry in entries) or "none"
    if not name:
        raise ConfigurationError(f"{where} is not set (known: {known}); set one with 'kubectl config use-context'")
    found = next((entry for entry in entries if entry.get("name") == name), None)
    if found is None:
        raise ConfigurationError(f"{where} {name!r} does not exist (known: {known}); choose another")
    value = found.get(body)
    return value if isinstance(value, dict) else {}


def _bytes(body: Entry, field: str, where: str) -> bytes:
    data = body.get(f"{field}-data")
    try:
        if data:
            return base64.b64decode(data, validate=False)
        return Path(body[field]).read_bytes() if body.get(field) else b""
    except (ValueError, TypeError, OSError) as error:
        raise ConfigurationError(f"{where}: {field}: {error}; check the file") from error


def _authenticated(
    target: Target, user: Entry, where: str, paths: Sequence[Path], environment: Mapping[str, str]
) -> Target:
    if user.get("token"):
        return replace(target, authorization=_bearer(user["token"], f"{where}: users[].user.token"))
    if user.get("tokenFile"):
        token = _text(user["tokenFile"], where)
        return replace(target, authorization=_bearer(token, f"{where}: users[].user.tokenFile"))
    if user.get("exec"):
        return _from_plugin(target, user["exec"], where, environment)
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        return replace(target, authorization=f"Basic {base64.b64encode(pair).decode()}")
    if user.get("auth-provider"):
        return replace(target, authorization=_from_identity_provider(paths))
    return target


def _bearer(token: object, where: str) -> str:
    """The header of a token. Raises ConfigurationError for what no header can carry."""
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise ConfigurationError(f"{where}: a token is one line of ASCII characters; check the file")
    return f"Bearer {token}"


def _text(name: str, where: str) -> str:
    try:
        return Path(name).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise ConfigurationError(f"{where}: users[].user.tokenFile {name}: {why}") from error


def _from_plugin(target: Target, spec: Entry, where: str, environment: Mapping[str, str]) -> Target:
    """Credentials of an exec plugin (client.authentication.k8s.io)."""
    if not isinstance(spec, dict) or not spec.get("command"):
        raise ConfigurationError(f"{where}: users[].user.exec: expected a map with a command; check the file")
    version = spec.get("apiVersion") or "client.authentication.k8s.io/v1"
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    try:
        added = {str(entry["name"]): str(entry["value"]) for entry in spec.get("env") or []}
        done = subprocess.run(
            [str(spec.get("command")), *map(str, spec.get("args") or [])],
            env={**environment, **added, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=EXEC_SECONDS,
            check=True,
        )
        status = json.loads(done.stdout)["status"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{where}: users[].user.exec: {spec.get('command')} gave no credentials: {error}"
        ) from error
    return replace(
        target,
        authorization=_bearer(status["token"], f"{where}: users[].user.exec") if status.get("token") else "",
        certificate=str(status.get("clientCertificateData") or "").encode() or target.certificate,
        key=str(status.get("clientKeyData") or "").encode() or target.key,
    )


def _from_identity_provider(paths: Sequence[Path]) -> str:
    import asyncio

    from stromboli.kube import connecting

    async def header() -> str:
        connection = await connecting.connect(kubeconfig=os.pathsep.join(map(str, paths)))
        try:
            return await connection.credentials.header() or ""
        finally:
            await connection.close()

    return asyncio.run(header())


def _from_pod(environment: Mapping[str, str]) -> Target:
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        token = (SERVICE_ACCOUNT / "token").read_text().strip()
        ca = (SERVICE_ACCOUNT / "ca.crt").read_bytes()
        namespace = (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError as error:
        raise ConfigurationError(f"the pod's service account cannot be used: {error}; pass --kubeconfig") from error
    bracketed = f"[{host}]" if ":" in host else host
    return Target(f"https://{bracketed}:{port}", ca=ca, authorization=f"Bearer {token}", namespace=namespace)


def _address(text: str) -> str:
    from urllib.parse import urlsplit

    address = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or not address.isascii() or not address.isprintable() or " " in address:
        raise ConfigurationError(f"{text!r} is not an address of an API server; give one like https://10.0.0.1:6443")
    return address.rstrip("/")
