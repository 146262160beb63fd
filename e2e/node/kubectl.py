"""kubectl, of the same version as the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from e2e.realnode.commands import run


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with a kubeconfig and a namespace. Called with arguments, it answers what kubectl prints.

    Raises:
        CommandError: kubectl failed; with its words.
    """

    program: Path
    kubeconfig: Path
    namespace: str

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        where = [f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}"]
        return await run(self.program, *where, *arguments, stdin=stdin)
