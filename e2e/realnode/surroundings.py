"""What one part of the tool tells the next: a run's settings to the process inside, facts to the suite."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

NAMESPACES_FILE = "namespaces.json"
"""In a run's directory: the kernel's names of the namespaces that were entered."""
KEPT = ("logs", "audit.log")
"""What is left of a run's directory when the run fails."""
VARIABLE = "E2E_NODE"
"""Environment variable with the path of the suite's :class:`Surroundings`."""


@dataclass(frozen=True, slots=True)
class _Written:
    """Data that is kept as a JSON file."""

    def write(self, path: Path) -> None:
        """Write it."""
        path.write_text(json.dumps(dataclasses.asdict(self), default=str))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what :meth:`write` wrote."""
        return cls(**_paths(json.loads(path.read_text())))


@dataclass(frozen=True, slots=True)
class Settings(_Written):
    """One run: its name (which is its control group's), where it writes, and what it is given."""

    name: str
    directory: Path
    programs: Mapping[str, Path]
    archives: Sequence[Path]
    keep: bool = False
    pytest: Sequence[str] = field(default_factory=list)

    @property
    def volatile(self) -> Path:
        """Where everything is written but logs: in memory, inside only, and gone with the mount namespace."""
        return self.directory / "volatile"

    @property
    def logs(self) -> Path:
        """Where all programs and pods write their logs."""
        return self.directory / "logs"


@dataclass(frozen=True, slots=True)
class Surroundings(_Written):
    """What tests need to know of the cluster that they run on."""

    kubeconfig: Path
    audit_log: Path
    programs: Mapping[str, Path]
    nodes: Sequence[str]
    workload_image: str


def _paths(data: dict[str, Any]) -> dict[str, Any]:
    """Paths among what JSON holds as text."""
    for name in ("directory", "kubeconfig", "audit_log"):
        if name in data:
            data[name] = Path(data[name])
    data["programs"] = {name: Path(path) for name, path in data["programs"].items()}
    if "archives" in data:
        data["archives"] = [Path(path) for path in data["archives"]]
    return data
