"""kubectl as tests call it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SECONDS = 30.0


@dataclass(frozen=True)
class Result:
    """What a command printed and how it ended."""

    code: int
    output: str
    errors: str


@dataclass(frozen=True)
class Kubectl:
    """The unmodified kubectl on PATH, with a kubeconfig and a namespace."""

    kubeconfig: Path
    namespace: str
    directory: Path

    def try_(self, *arguments: str, manifest: object = None, text: str | None = None) -> Result:
        """Run a command; ``manifest`` (one object or a list of them) or ``text`` goes to its standard input."""
        given = text if manifest is None else _documents(manifest)
        environment = {**os.environ, "KUBECACHEDIR": str(self.kubeconfig.parent / "cache"), "HOME": str(self.directory)}
        found = subprocess.run(
            ["kubectl", "--kubeconfig", str(self.kubeconfig), "--namespace", self.namespace, *arguments],
            input=given,
            text=True,
            capture_output=True,
            timeout=SECONDS,
            env=environment,
            check=False,
        )
        return Result(found.returncode, found.stdout, found.stderr)

    def __call__(self, *arguments: str, manifest: object = None, text: str | None = None) -> str:
        """Run a command that must succeed; the answer is what it printed."""
        result = self.try_(*arguments, manifest=manifest, text=text)
        assert result.code == 0, f"kubectl {' '.join(arguments)}: {result.errors}{result.output}"
        return result.output

    def json(self, *arguments: str) -> Any:
        """Run a command with ``-o json``."""
        return json.loads(self(*arguments, "-o", "json"))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command whose output is read while it runs."""
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), "--namespace", self.namespace, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _documents(manifest: object) -> str:
    return yaml.safe_dump_all(manifest if isinstance(manifest, list) else [manifest])
