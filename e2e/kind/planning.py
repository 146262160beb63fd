"""What is run, as data: the cluster's configuration, the chart's values and every command line."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from images.build import PROJECT

from e2e.realcluster.rendering import Release
from stromboli.cli.stack import ADMISSIONS
from stromboli.kube.json import JsonObject

ARCHIVES = PROJECT / "build" / "image"
SOURCES = tuple(PROJECT / name for name in ("src", "images", "pyproject.toml", "constraints.txt"))
WORKERS = 3
READY = "180s"
RELEASE = Release("volcano")
WORKLOAD = "busybox:latest"
"""What the suite's pods run."""
NOT_HERE = "not simulated_nodes and not own_processes"
"""pytest's ``-m``: nodes are real ones, and the processes run in pods."""

Command = tuple[str, ...]


def configuration(workers: int = WORKERS) -> JsonObject:
    """The cluster: one node for the control plane, and as many for pods as are asked for."""
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "nodes": [{"role": "control-plane"}, *({"role": "worker"} for _ in range(workers))],
    }


def values() -> JsonObject:
    """What the suite needs of the installation: every path of admission, and short cycles."""
    return {"custom": {"enabled_admissions": ADMISSIONS, "scheduler_schedule_period": "200ms"}}


def archive(directory: Path = ARCHIVES, sources: Iterable[Path] = SOURCES) -> Path | None:
    """The archive of ``make image`` for this machine, if there is one that is newer than all it was made of."""
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    newest = max(path.stat().st_mtime for source in sources for path in (source, *source.rglob("*.py")))
    found = [path for path in directory.glob(f"*-{architecture}.tar") if path.stat().st_mtime > newest]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


@dataclass(frozen=True, slots=True)
class Plan:
    """Command lines for one cluster of that name, whose files are in ``directory``."""

    name: str
    directory: Path
    image: str
    """Reference of our image, as the chart asks for it."""

    @property
    def kubeconfig(self) -> Path:
        """Of the cluster; no other is touched."""
        return self.directory / "kubeconfig"

    @property
    def create(self) -> Command:
        """Make the cluster; its configuration comes on standard input."""
        return ("kind", "create", "cluster", *self._named, *self._reached, "--config=-", f"--wait={READY}")

    @property
    def create_input(self) -> str:
        """Standard input of :attr:`create`."""
        return yaml.safe_dump(configuration())

    def load(self, archive: Path | None) -> list[Command]:
        """Bring both images onto the nodes: ours from an archive, else built here with Docker."""
        ours: list[Command] = (
            [("kind", "load", "image-archive", str(archive), *self._named)]
            if archive is not None
            else [
                ("docker", "build", f"--tag={self.image}", str(PROJECT)),
                ("kind", "load", "docker-image", self.image, *self._named),
            ]
        )
        return [*ours, ("docker", "pull", WORKLOAD), ("kind", "load", "docker-image", WORKLOAD, *self._named)]

    @property
    def export_logs(self) -> Command:
        """Keep what the nodes and pods have logged."""
        return ("kind", "export", "logs", str(self.directory / "logs"), *self._named)

    @property
    def delete(self) -> Command:
        """Take the cluster away."""
        return ("kind", "delete", "cluster", *self._named, *self._reached)

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Environment of the suite: the cluster, and that the processes run there already."""
        return {**inherited, "E2E_KUBECONFIG": str(self.kubeconfig), "E2E_RUNNING": "1"}

    @property
    def _named(self) -> tuple[str, ...]:
        return (f"--name={self.name}",)

    @property
    def _reached(self) -> tuple[str, ...]:
        return (f"--kubeconfig={self.kubeconfig}",)
