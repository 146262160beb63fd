"""Helm as users run it, on the cluster of the nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.realcluster.rendering import CHART, Release
from e2e.realnode.commands import run

WAIT = "10m"
SECONDS = 660.0
"""Longer than Helm itself waits, so that Helm says what was not ready."""


@dataclass(frozen=True, slots=True)
class Helm:
    """Helm for one release. It waits until all that it changed is ready, and fails when that does not come."""

    program: Path
    kubeconfig: Path
    release: Release = Release()

    async def install(self, *, chart: Path = CHART, values: Mapping[str, object] | None = None) -> None:
        """``helm install --wait``, into the release's namespace, which it makes if it must.

        Raises:
            CommandError: Helm's words.
        """
        await self._apply("install", chart, values, "--create-namespace")

    async def upgrade(self, *, chart: Path = CHART, values: Mapping[str, object] | None = None) -> None:
        """``helm upgrade --wait``; values that are not given are the chart's again.

        Raises:
            CommandError: Helm's words.
        """
        await self._apply("upgrade", chart, values, "--reset-values")

    async def uninstall(self) -> None:
        """``helm uninstall --wait``."""
        await self._run("uninstall", self.release.name, "--wait", f"--timeout={WAIT}")

    async def revision(self) -> int:
        """Number of the release's revision, from 1."""
        (found,) = json.loads(await self._run("list", f"--filter=^{self.release.name}$", "--output=json"))
        return int(found["revision"])

    async def _apply(self, verb: str, chart: Path, values: Mapping[str, object] | None, flag: str) -> None:
        wait = ["--wait", f"--timeout={WAIT}", "--values=-"]
        await self._run(verb, self.release.name, chart, flag, *wait, stdin=json.dumps(values or {}))

    async def _run(self, *arguments: str | Path, stdin: str = "") -> str:
        where = [f"--kubeconfig={self.kubeconfig}", f"--namespace={self.release.namespace}"]
        home = [f"HELM_{name}_HOME={self.kubeconfig.parent / 'helm'}" for name in ("CACHE", "CONFIG", "DATA")]
        return await run("env", *home, self.program, *arguments, *where, stdin=stdin, seconds=SECONDS)
