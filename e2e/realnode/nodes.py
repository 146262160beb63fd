"""One node: containerd and a kubelet, with directories, socket and bridge of its own beside those of other nodes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from e2e.realcluster.daemons import Daemon
from e2e.realnode import configurations
from e2e.realnode.addresses import NodeAddresses
from e2e.realnode.commands import CommandError, run
from e2e.realnode.surroundings import Settings

START_SECONDS = 300.0
CONTAINERD_NAMESPACE = "k8s.io"


class Node:
    """A node that joins the cluster of ``kubeconfig``; its programs end with the namespaces."""

    def __init__(self, addresses: NodeAddresses, settings: Settings, *, kubeconfig: Path) -> None:
        self.addresses = addresses
        self.directory = settings.volatile / addresses.name
        self._logs = settings.logs
        self._kubelet = settings.programs["kubelet"]
        self._kubeconfig = kubeconfig
        self._cgroup = settings.name
        self._daemons: list[Daemon] = []

    @property
    def name(self) -> str:
        """Name of the Node object."""
        return self.addresses.name

    async def run_containers(self, sandbox_image: str, archives: Sequence[Path]) -> None:
        """Start containerd and give it the images."""
        self._make_directories(sandbox_image)
        containerd = await self._start("containerd", ["containerd", "--config", self.directory / "containerd.toml"])
        await containerd.until(self._answers, within=START_SECONDS)
        for archive in archives:
            await run(*self._ctr(), "images", "import", archive)

    async def join(self) -> None:
        """Start the kubelet; the node is Ready some seconds later."""
        arguments = [
            f"--config={self.directory / 'kubelet.json'}",
            f"--kubeconfig={self._kubeconfig}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.addresses.address}",
            f"--root-dir={self.directory / 'kubelet'}",
            f"--cert-dir={self.directory / 'certificates'}",
        ]
        await self._start("kubelet", [self._kubelet, *arguments])

    async def until(self, condition: Callable[[], Awaitable[bool]], *, within: float) -> None:
        """Wait for a condition. Raises DaemonError when the kubelet ends first, or the time was not enough."""
        await self._daemons[-1].until(condition, within=within)

    def keep(self, daemon: Daemon) -> Daemon:
        """Count a program among the node's."""
        self._daemons.append(daemon)
        return daemon

    def check(self) -> None:
        """Raises DaemonError when one of its programs has ended by itself."""
        for daemon in self._daemons:
            daemon.check()

    async def _start(self, name: str, command: Sequence[str | Path]) -> Daemon:
        return self.keep(await Daemon.start(f"{self.name}-{name}", command, self._logs))

    def _make_directories(self, sandbox_image: str) -> None:
        for path in (self._logs, self.directory / "cni"):
            path.mkdir(parents=True, exist_ok=True)
        pod_logs = self._logs / f"{self.name}-pods"
        kubelet = configurations.kubelet(self.addresses, self.directory, logs=pod_logs, cgroup=self._cgroup)
        files = {
            "containerd.toml": configurations.containerd(self.directory, sandbox_image=sandbox_image),
            "cni/10-bridge.conflist": json.dumps(configurations.network(self.addresses)),
            "kubelet.json": json.dumps(kubelet),
        }
        for name, text in files.items():
            (self.directory / name).write_text(text)

    def _ctr(self) -> list[str | Path]:
        return ["ctr", "--address", self.directory / "containerd.sock", "--namespace", CONTAINERD_NAMESPACE]

    async def _answers(self) -> bool:
        try:
            await run(*self._ctr(), "version")
        except CommandError:
            return False
        return True
