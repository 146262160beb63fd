"""The kubeconfig file that leads to the embedded cluster."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from stromboli.localcluster.certificates import write_private

CONTEXT = "stromboli"


def kubeconfig(server: str, ca: bytes, token: str) -> dict[str, object]:
    """A kubeconfig for ``server`` (a URL) with the CA inside and ``token`` as the user's credential."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": CONTEXT,
                "cluster": {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()},
            }
        ],
        "users": [{"name": f"{CONTEXT}-admin", "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": f"{CONTEXT}-admin"}}],
        "current-context": CONTEXT,
    }


def write_kubeconfig(path: Path, server: str, ca: bytes, token: str) -> None:
    """Write the file so that only its owner reads it and nobody sees half of it."""
    write_private(path, yaml.safe_dump(kubeconfig(server, ca, token), sort_keys=False).encode())
