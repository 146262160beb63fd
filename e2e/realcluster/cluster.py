"""A control plane with simulated nodes: what :mod:`e2e.realcluster.controlplane` starts, and kwok."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from e2e.realcluster.controlplane import HOST, PROGRAMS, START_SECONDS, ControlPlane
from stromboli.api.kinds import NODES
from stromboli.kube.client import Client
from stromboli.kube.errors import KubeError
from stromboli.kube.json import JsonObject
from stromboli.process.ports import free_port

NEEDED = (*PROGRAMS, "kwok")
NODE_ANNOTATION = {"kwok.x-k8s.io/node": "fake"}
KWOK = Path(__file__).with_name("kwok.yaml")


class RealCluster(ControlPlane):
    """etcd, kube-apiserver, kube-controller-manager and kwok with simulated nodes, for as long as the block runs."""

    def __init__(
        self,
        directory: Path,
        binaries: Mapping[str, Path],
        *,
        nodes: int = 5,
        capacity: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(directory, binaries)
        self._nodes = nodes
        self._capacity = dict(capacity or {"cpu": "8", "memory": "32Gi", "pods": "110"})
        self._kwok_port = free_port()

    async def _start_all(self) -> None:
        await super()._start_all()
        await self._create_nodes()
        kwok = await self.run("kwok", self._kwok())
        async with await Client.connect(kubeconfig=str(self.kubeconfig), qps=0) as client:
            await kwok.until(lambda: self._nodes_ready(client), within=START_SECONDS)

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
        super()._write_files()
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
        return len(nodes) == self._nodes and all(is_usable(node) for node in nodes)


def is_usable(node: JsonObject) -> bool:
    """Whether a node is Ready and takes pods."""
    conditions = {item["type"]: item["status"] for item in node.get("status", {}).get("conditions", [])}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")
