"""``ssh``: one key pair for all pods of a job, so that they can log in to each other (spec 02 section 22.3)."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import ClassVar

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from stromboli.api import kinds
from stromboli.api.batch import Job
from stromboli.controllers.job.plugins import Attachment, Replica
from stromboli.controllers.job.plugins.arguments import Value, read
from stromboli.controllers.job.plugins.containers import append, every
from stromboli.controllers.job.plugins.hosts import host, replicas_with_hosts
from stromboli.kube.json import JsonObject

_KEY_BITS = 2048
_ROOT_SSH = "/root/.ssh"
_FILES = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")


class Ssh:
    """Keeps a Secret with keys and client configuration, and mounts it into every container."""

    name: ClassVar[str] = "ssh"
    order: ClassVar[int] = 30
    marked: ClassVar[bool] = True

    def __init__(self, arguments: Sequence[str]) -> None:
        defaults: dict[str, Value] = {
            "ssh-key-file-path": _ROOT_SSH,
            "ssh-private-key": "",
            "ssh-public-key": "",
            "ssh-port": 22,
        }
        values = read(self.name, arguments, defaults)
        self._path = str(values["ssh-key-file-path"])
        self._private = str(values["ssh-private-key"])
        self._public = str(values["ssh-public-key"])
        port = int(values["ssh-port"])
        self._port = port if 0 < port <= 65535 else 22

    def decorate(self, pod: JsonObject, replica: Replica) -> None:
        """Mount the Secret at the configured path."""
        secret = _secret_name(replica.job)
        items = [{"key": name, "path": f".ssh/{name}"} for name in _FILES]
        mode = 0o600 if self._path == _ROOT_SSH else 0o644
        volume = {"name": secret, "secret": {"secretName": secret, "items": items, "defaultMode": mode}}
        append(pod["spec"], "volumes", volume)
        for container in every(pod):
            append(container, "volumeMounts", {"name": secret, "mountPath": self._path, "subPath": ".ssh"})

    def attachments(self, job: Job) -> Sequence[Attachment]:
        """The Secret. Its keys are drawn when it is written, and stay as long as the hosts stay."""
        config = self.config(job)
        return (
            Attachment(
                kind=kinds.SECRETS,
                name=_secret_name(job),
                build=lambda: {"type": "Opaque", "data": _encoded(self._keys() | {"config": config})},
                stale=lambda existing: (existing.get("data") or {}).get("config") != _base64(config),
            ),
        )

    def config(self, job: Job) -> str:
        """``~/.ssh/config`` for all hosts of the job."""
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for task in job.spec.tasks:
            for index in range(replicas_with_hosts(task)):
                hostname, subdomain = host(job, task, index)
                lines += [f"Host {hostname}", f"  HostName {hostname}.{subdomain}", f"  Port {self._port}"]
        return "\n".join(lines) + "\n"

    def _keys(self) -> dict[str, str]:
        private, public = (self._private, self._public) if self._private else _generate()
        return {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}


def _generate() -> tuple[str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode() + "\n"


def _secret_name(job: Job) -> str:
    return f"{job.name}-ssh"


def _encoded(files: dict[str, str]) -> dict[str, str]:
    return {name: _base64(text) for name, text in files.items()}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
