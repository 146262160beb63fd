"""The programs that must be there, and what to do about one that is not."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from e2e.realnode.commands import CommandError, run

NEXT_STEPS: Mapping[str, str] = {
    "docker": "install Docker Engine, or use make e2e-node, which needs none",
    "kind": "go install sigs.k8s.io/kind@latest, and put $(go env GOPATH)/bin on PATH",
    "kubectl": "install kubectl 1.32 or newer",
    "helm": "install Helm 3.17 or newer, or build the suite's own: python -m e2e.realcluster --build",
}
DAEMON_SECONDS = 30.0


class PrerequisiteError(Exception):
    """A program is missing or does not work; the text names it and the next step."""

    for_user = True


def check(which: Callable[[str], object] = shutil.which, found_helm: Path | None = None) -> None:
    """Look for all programs.

    Raises:
        PrerequisiteError: for those that are missing, one line each.
    """
    missing = [name for name in NEXT_STEPS if not (found_helm if name == "helm" else which(name))]
    if missing:
        lines = [f"{name} is not there: {NEXT_STEPS[name]}" for name in missing]
        raise PrerequisiteError("\n".join(lines))


async def check_daemon() -> None:
    """Ask Docker's daemon for its version.

    Raises:
        PrerequisiteError: it does not answer.
    """
    try:
        await run("docker", "version", "--format={{.Server.Version}}", seconds=DAEMON_SECONDS)
    except CommandError as error:
        raise PrerequisiteError(
            f"Docker's daemon does not answer: {error}\nstart it, or use make e2e-node, which needs none"
        ) from error
