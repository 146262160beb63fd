"""Completion offers the words and flags of the trees, and the scripts are shell that shells accept."""

from __future__ import annotations

import asyncio
import shutil
import subprocess

import pytest

from stromboli.cli.vc.completion import candidates
from stromboli.testing.apiserver import FakeApiServer
from tests.cli.driving import TREES, drive

OFFERS = {
    "the groups": (["jo"], ["job", "jobflow", "jobtemplate"]),
    "sub-commands": (["queue", ""], ["create", "delete", "operate", "list", "get"]),
    "flags": (["job", "run", "--re"], ["--replicas", "--requests"]),
    "nothing": (["zebra"], []),
}


@pytest.mark.parametrize("name", OFFERS)
def test_words_are_offered(name: str) -> None:
    words, want = OFFERS[name]
    assert list(candidates(TREES["vcctl"], words)) == want


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_scripts_name_the_command(server: FakeApiServer, shell: str) -> None:
    done = await drive(f"vcctl completion {shell}", server)
    assert (done.code, "vcctl __complete" in done.out) == (0, True)


async def test_bash_takes_the_script(server: FakeApiServer) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = (await drive("vcctl completion bash", server)).out
    await asyncio.to_thread(subprocess.run, [bash, "-c", script], check=True, timeout=30)


async def test_an_unknown_shell_is_refused(server: FakeApiServer) -> None:
    done = await drive("vcctl completion csh", server)
    assert done.err == "Failed to completion: shell 'csh' is not known; choose one of bash, zsh, fish\n"
