"""Commands start fast because of what they do not import: no client library, no models, no arrays."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from stromboli.api.kinds import JOBS
from stromboli.testing.apiserver import FakeApiServer
from tests.cli.driving import job

HEAVY = ("aiohttp", "asyncio", "kubernetes_asyncio", "pydantic", "numpy", "typer", "rich", "msgspec", "yaml")
MOST_MODULES = 320
"""Loaded at the end, Python's own included. Each costs; those of 200 ms would be about twice as many."""
PROBE = f"""
import sys
from stromboli.cli.vcctl import main
code = main()
found = [name for name in {HEAVY!r} if name in sys.modules]
sys.stderr.write(f"{{len(sys.modules)}} {{' '.join(found)}}")
sys.exit(code)
"""
LINES = {
    "help": ["--help"],
    "a list of jobs": ["job", "list"],
    "a completion": ["__complete", "job", "view", ""],
    "one job as JSON": ["job", "view", "j", "-o", "json"],
}


def _run(line: list[str], server: str) -> str:
    """How many modules were loaded, and which of the heavy ones."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *line],
        env={"PATH": os.environ["PATH"], "KUBERNETES_MASTER": server, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("name", LINES)
async def test_commands_load_little(server: FakeApiServer, name: str) -> None:
    server.put(JOBS, job("j"))
    loaded, _, heavy = (await asyncio.to_thread(_run, LINES[name], server.url)).partition(" ")
    assert heavy == ""
    assert int(loaded) < MOST_MODULES
