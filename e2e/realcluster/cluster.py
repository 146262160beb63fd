"""The control plane itself: which programs, with which flags, in which order, and how each says that it is ready."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from e2e.realcluster.daemons import Daemon, DaemonError
from stromboli.api.kinds import NODES
from stromboli.cli.stack import free_port
from stromboli.kube.client import Client
from stromboli.kube.errors import KubeError
from stromboli.kube.json import JsonObject
from stromboli.localcluster import certificates
from stromboli.localcluster.kubeconfig import write_kubeconfig

HOST = "127.0.0.1"
START_SECONDS = 90.0
NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kwok")
NODE_ANNOTATION = {"kwok.x-k8s.io/node": "fake"}
AUDITED_GROUP = "system:serviceaccounts:volcano-system"
KWOK = Path(__file__).with_name("kwok.yaml")


class RealCluster:
    """etcd, kube-apiserver, kube-controller-manager and kwok with simulated nodes, for as long as the block runs.

    Everything it writes is in ``directory``: ``kubeconfig`` (an administrator's), ``logs``, ``audit.log`` with every
    request of ``volcano-system``'s ServiceAccounts.
    """

    def __init__(
        self,
        directory: Path,
        binaries: Mapping[str, Path],
        *,
        nodes: int = 5,
        capacity: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.url = f"https://{HOST}:{free_port()}"
        self._binaries = binaries
        self._nodes = nodes
        self._capacity = dict(capacity or {"cpu": "8", "memory": "32Gi", "pods": "110"})
        self._etcd_port, self._kwok_port = free_port(), free_port()
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

    async def __aenter__(self) -> RealCluster:
        try:
            self._write_files()
            await self._start_all()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

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
            if not daemon.alive:
                raise DaemonError(f"{daemon.name} has ended; log: {daemon.log}")

    async def _start_all(self) -> None:
        for name in NEEDED:
            await self._start(name)
            if name == "kube-apiserver":
                await self._create_nodes()
        async with await Client.connect(kubeconfig=str(self.kubeconfig), qps=0) as client:
            await self._daemons["kwok"].until(lambda: self._nodes_ready(client), within=START_SECONDS)

    async def _start(self, name: str) -> None:
        daemon = await Daemon.start(name, [self._binaries[name], *self._arguments(name)], self.directory / "logs")
        self._daemons[name] = daemon
        self._stack.push_async_callback(daemon.stop)
        (self.directory / f"{name}.pid").write_text(str(daemon.pid))
        url = {"etcd": f"http://{HOST}:{self._etcd_port}/health", "kube-apiserver": f"{self.url}/readyz"}.get(name)
        if url is not None:
            await daemon.until(lambda: _answers(url), within=START_SECONDS)

    def _arguments(self, name: str) -> list[str]:
        match name:
            case "etcd":
                return self._etcd()
            case "kube-apiserver":
                return self._api_server()
            case "kube-controller-manager":
                return self._controller_manager()
        return self._kwok()

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
            f"--bind-address={HOST}",
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
            "--service-cluster-ip-range=10.96.0.0/16",
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
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
        ]

    def _kwok(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--config={self.directory / 'kwok.yaml'}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--node-ip={HOST}",
            f"--node-port={self._kwok_port}",
            f"--server-address={HOST}:{self._kwok_port}",
            f"--tls-cert-file={self.directory / 'kubelet.crt'}",
            f"--tls-private-key-file={self.directory / 'kubelet.key'}",
        ]

    def _write_files(self) -> None:
        (self.directory / "logs").mkdir(parents=True, exist_ok=True)
        ca = certificates.make_ca("stromboli-e2e")
        (self.directory / "ca.crt").write_bytes(ca.certificate)
        for name in ("apiserver", "kubelet"):
            identity = certificates.issue(ca, name, hosts=[HOST, "localhost"])
            (self.directory / f"{name}.crt").write_bytes(identity.certificate)
            certificates.write_private(self.directory / f"{name}.key", identity.key)
        certificates.write_private(self.directory / "service-accounts.key", _signing_key())
        token = secrets.token_urlsafe(32)
        tokens = f'{token},admin,admin,"system:masters"\n'
        certificates.write_private(self.directory / "tokens.csv", tokens.encode())
        write_kubeconfig(self.kubeconfig, self.url, ca.certificate, token)
        (self.directory / "audit-policy.yaml").write_text(yaml.safe_dump(_audit_policy()))
        container_log = self.directory / "container.log"
        container_log.write_text("2026-01-01T00:00:00.000000000Z stdout F a simulated container\n")
        (self.directory / "kwok.yaml").write_text(KWOK.read_text().replace("CONTAINER_LOG", str(container_log)))

    async def _create_nodes(self) -> None:
        async with await Client.connect(kubeconfig=str(self.kubeconfig), qps=0) as client:
            for index in range(self._nodes):
                await client.create(NODES, self._node(f"node-{index}"))

    def _node(self, name: str) -> JsonObject:
        return {
            "apiVersion": NODES.api_version,
            "kind": NODES.kind,
            "metadata": {
                "name": name,
                "annotations": NODE_ANNOTATION,
                "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            },
            "status": {"capacity": self._capacity, "allocatable": self._capacity},
        }

    async def _nodes_ready(self, client: Client) -> bool:
        try:
            nodes = await client.list(NODES)
        except KubeError:
            return False
        return len(nodes) == self._nodes and all(_is_usable(node) for node in nodes)


def _is_usable(node: JsonObject) -> bool:
    conditions = {item["type"]: item["status"] for item in node.get("status", {}).get("conditions", [])}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


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


async def _answers(url: str) -> bool:
    timeout = aiohttp.ClientTimeout(total=5)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, ssl=False) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False
