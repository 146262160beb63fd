"""Running the command line as a user does: programs of the installation, with the cluster's kubeconfig."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from e2e.cluster import Json

BIN = Path(sys.executable).parent


class Shell:
    """Runs programs with the cluster's kubeconfig; the installation's own come first on the PATH."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self.namespace = namespace
        path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": path}

    async def run(self, *words: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        process = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=self.environment
        )
        out, err = await asyncio.wait_for(process.communicate(), 60)
        return process.returncode or 0, out.decode(), err.decode()

    async def ok(self, *words: str) -> str:
        """Standard output of a program that must succeed."""
        code, out, err = await self.run(*words)
        assert code == 0, f"{' '.join(words)}: exit {code}\n{out}\n{err}"
        return out

    async def explain(self, job: str, *more: str) -> Json:
        """What ``vcctl job explain`` says of a job of the test's namespace."""
        text = await self.ok("vcctl", "job", "explain", job, "-n", self.namespace, "-o", "json", *more)
        found: Json = json.loads(text)
        return found
