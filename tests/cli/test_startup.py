"""Commands start fast: no client library, no models, no arrays, and less than 200 ms of processor time."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys

import pytest

from stromboli.api.kinds import JOBS
from stromboli.testing.apiserver import FakeApiServer
from tests.cli.driving import job

HEAVY = ("aiohttp", "asyncio", "kubernetes_asyncio", "pydantic", "numpy", "typer", "rich", "msgspec")
BUDGET_SECONDS = 0.2
PROBE = f"""
import sys
from stromboli.cli.vcctl import main
code = main()
sys.stderr.write(" ".join(name for name in {HEAVY!r} if name in sys.modules))
sys.exit(code)
"""
LINES = {"help": ["--help"], "a list of jobs": ["job", "list"]}


def _run(line: list[str], server: str) -> tuple[str, float]:
    """What the probe says was imported, and the processor seconds it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *line],
        env={"PATH": os.environ["PATH"], "KUBERNETES_MASTER": server, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stderr, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("name", LINES)
async def test_commands_start_within_their_budget(server: FakeApiServer, name: str) -> None:
    server.put(JOBS, job("j"))
    runs = [await asyncio.to_thread(_run, LINES[name], server.url) for _ in range(3)]
    assert {imported for imported, _ in runs} == {""}
    assert min(seconds for _, seconds in runs) < BUDGET_SECONDS
