"""The control plane itself: etcd, kube-apiserver and kube-controller-manager, with which flags, in which order, and how
each says that it is ready. What nodes it has is the business of who starts it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from e2e.realcluster.daemons import Daemon
from stromboli.cli.stack import answers
from stromboli.kube.json import JsonObject
from stromboli.localcluster import certificates
from stromboli.localcluster.kubeconfig import write_kubeconfig
from stromboli.process.ports import free_port

HOST = "127.0.0.1"
START_SECONDS = 300.0
HEALTH_SECONDS = 5.0
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
AUDITED_GROUP = "system:serviceaccounts:volcano-system"
SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
"""Of the Service ``kubernetes``: the first of the range."""


class ControlPlane:
    """etcd, kube-apiserver and kube-controller-manager, for as long as the block runs.

    Everything it writes is in ``directory``: ``kubeconfig`` (an administrator's), ``logs``, ``audit.log`` with every
    request of ``volcano-system``'s ServiceAccounts. ``host`` is the address that the API server listens on; ``more``
    holds further arguments by program.
    """

    def __init__(
        self,
        directory: Path,
        binaries: Mapping[str, Path],
        *,
        host: str = HOST,
        more: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.directory = directory
        self.host = host
        self.url = f"https://{host}:{free_port()}"
        self._binaries = binaries
        self._more = more or {}
        self._etcd_port = free_port()
        self._stack = AsyncExitStack()
        self._daemons: dict[str, Daemon] = {}

    @property
    def kubeconfig(self) -> Path:
        """An administrator's kubeconfig."""
        return self.directory / "kubeconfig"

    @property
    def authority(self) -> bytes:
        """The CA certificate of the API server, as PEM."""
        return (self.directory / "ca.crt").read_bytes()

    @property
    def audit_log(self) -> Path:
        """One JSON object a line."""
        return self.directory / "audit.log"

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def start(self) -> None:
        """Start all of it, and leave the stopping to somebody else, such as the end of a process namespace."""
        self._write_files()
        await self._start_all()

    @property
    def api_server_pid(self) -> Path:
        """A file with the API server's process id, for tests that end it; :meth:`supervise` starts it again."""
        return self.directory / "kube-apiserver.pid"

    async def supervise(self) -> None:
        """Start the API server again whenever it ends, as a node's supervisor does, until cancelled."""
        while True:
            await self._daemons["kube-apiserver"].wait()
            await self._start("kube-apiserver")

    def check(self) -> None:
        """Raises DaemonError when a program has ended by itself."""
        for daemon in self._daemons.values():
            daemon.check()

    async def run(self, name: str, arguments: Sequence[str | Path], *, health: str | None = None) -> Daemon:
        """Start a program and keep it until the end of the block; returns once ``health`` (a URL) answers 200.

        Raises:
            DaemonError: it ended, or did not answer in time.
        """
        daemon = await Daemon.start(name, [self._binaries[name], *arguments], self.directory / "logs")
        self._daemons[name] = daemon
        self._stack.push_async_callback(daemon.stop)
        (self.directory / f"{name}.pid").write_text(str(daemon.pid))
        if health is not None:
            await daemon.until(lambda: answers(health, HEALTH_SECONDS), within=START_SECONDS)
        return daemon

    async def _start_all(self) -> None:
        for name in PROGRAMS:
            await self._start(name)

    async def _start(self, name: str) -> None:
        arguments, health = {
            "etcd": (self._etcd, f"http://{HOST}:{self._etcd_port}/health"),
            "kube-apiserver": (self._api_server, f"{self.url}/readyz"),
            "kube-controller-manager": (self._controller_manager, None),
        }[name]
        await self.run(name, [*arguments(), *self._more.get(name, ())], health=health)

    def _etcd(self) -> list[str]:
        client, peer = f"http://{HOST}:{self._etcd_port}", f"http://{HOST}:{free_port()}"
        return [
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server(self) -> list[str]:
        files = self.directory
        return [
            f"--etcd-servers=http://{HOST}:{self._etcd_port}",
            f"--bind-address={self.host}",
            f"--secure-port={self.url.rpartition(':')[2]}",
            f"--tls-cert-file={files / 'apiserver.crt'}",
            f"--tls-private-key-file={files / 'apiserver.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={files / 'service-accounts.key'}",
            f"--service-account-signing-key-file={files / 'service-accounts.key'}",
            f"--token-auth-file={files / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            # So that every owner reference we write is checked against our roles.
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--allow-privileged=true",
            # Simulated nodes have names that nobody resolves.
            "--kubelet-preferred-address-types=InternalIP",
            # Which Kubernetes 1.34 has, but not switched on.
            "--feature-gates=MutatingAdmissionPolicy=true",
            "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
            f"--audit-policy-file={files / 'audit-policy.yaml'}",
            f"--audit-log-path={self.audit_log}",
        ]

    def _controller_manager(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--service-account-private-key-file={self.directory / 'service-accounts.key'}",
            # So that pods are told whom to trust.
            f"--root-ca-file={self.directory / 'ca.crt'}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
        ]

    def _write_files(self) -> None:
        (self.directory / "logs").mkdir(parents=True, exist_ok=True)
        ca = certificates.make_ca("stromboli-e2e")
        (self.directory / "ca.crt").write_bytes(ca.certificate)
        hosts = dict.fromkeys([self.host, HOST, SERVICE_ADDRESS, *certificates.SERVICE_NAMES])
        for name in ("apiserver", "kubelet"):
            identity = certificates.issue(ca, name, hosts=list(hosts))
            (self.directory / f"{name}.crt").write_bytes(identity.certificate)
            certificates.write_private(self.directory / f"{name}.key", identity.key)
        certificates.write_private(self.directory / "service-accounts.key", _signing_key())
        token = secrets.token_urlsafe(32)
        tokens = f'{token},admin,admin,"system:masters"\n'
        certificates.write_private(self.directory / "tokens.csv", tokens.encode())
        write_kubeconfig(self.kubeconfig, self.url, ca.certificate, token)
        (self.directory / "audit-policy.yaml").write_text(yaml.safe_dump(_audit_policy()))


def _signing_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _audit_policy() -> JsonObject:
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "userGroups": [AUDITED_GROUP]}, {"level": "None"}],
    }
