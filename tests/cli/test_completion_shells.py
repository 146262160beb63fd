"""Completion scripts in real shells: bash, zsh and fish offer the same. A shell that is not installed is skipped."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from stromboli.api import kinds
from stromboli.testing.apiserver import FakeApiServer
from tests.cli import shells
from tests.cli.driving import drive, job

Offered = Callable[[str, str, Mapping[str, str], Path], list[str]]

SHELLS: dict[str, tuple[str, Offered]] = {
    "bash": ("bash", shells.offered_by_bash),
    "zsh, on its fpath": ("zsh", shells.offered_by_zsh),
    "zsh, sourced": ("zsh", shells.offered_by_zsh_that_sources),
    "fish": ("fish", shells.offered_by_fish),
}
LINES = {
    "groups": ("vcctl job", {"job", "jobflow", "jobtemplate"}),
    "sub-commands": ("vcctl queue ", {"create", "delete", "get", "list", "operate"}),
    "flags": ("vcctl job run --re", {"--replicas", "--requests"}),
    "names from the cluster": ("vcctl job view t", {"train", "tune"}),
    "values of a flag": ("vcctl queue operate -a o", {"open"}),
    "files where a file is wanted": ("vcctl job preview -f manif", {"manifest.yaml"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("shell", SHELLS)
async def test_a_shell_offers_what_may_follow(server: FakeApiServer, tmp_path: Path, shell: str, line: str) -> None:
    name, offered = SHELLS[shell]
    shells.installed(name)
    for found in ("train", "tune"):
        server.put(kinds.JOBS, job(found))
    (tmp_path / "manifest.yaml").touch()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "KUBERNETES_MASTER": server.url, "TERM": "dumb", "LANG": "C"}
    script = (await drive(f"vcctl completion {name}", server)).out
    typed, want = LINES[line]
    assert set(await asyncio.to_thread(offered, typed, script, environment, tmp_path)) == want
