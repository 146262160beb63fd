"""Reading a kubeconfig: the cluster that it leads to, and the same cluster for somebody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from stromboli.kube.json import JsonObject
from stromboli.localcluster.certificates import write_private


class KubeconfigError(Exception):
    """A kubeconfig that leads nowhere; the text says what is missing."""

    for_user = True


def server(path: Path) -> str:
    """URL of the API server. Raises KubeconfigError."""
    return str(_cluster(path)["server"])


def write_for_token(path: Path, given: Path, token: str) -> None:
    """Write a kubeconfig that leads where ``given`` leads, with a token as credential. Raises KubeconfigError."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": _cluster(given)}],
        "users": [{"name": "e2e", "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        "current-context": "e2e",
    }
    write_private(path, yaml.safe_dump(content).encode())


def _cluster(path: Path) -> JsonObject:
    """The cluster of the current context; files that it names are found from anywhere."""
    try:
        content = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise KubeconfigError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise KubeconfigError(f"{path} is no kubeconfig")
    context = _named(path, content, "context", str(content.get("current-context", "")))
    cluster = _named(path, content, "cluster", str(context.get("cluster", "")))
    if not cluster.get("server"):
        raise KubeconfigError(f"{path}: its cluster has no server")
    if authority := cluster.get("certificate-authority"):
        cluster["certificate-authority"] = str((path.parent / authority).resolve())
    return cluster


def _named(path: Path, content: dict[str, Any], what: str, name: str) -> JsonObject:
    for entry in content.get(f"{what}s") or ():
        if entry.get("name") == name:
            return dict(entry.get(what) or {})
    raise KubeconfigError(f"{path} has no {what} {name!r}: kubectl config use-context NAME --kubeconfig {path}")
