"""Completion offers the words and flags of the trees, and the scripts are shell that shells accept."""

from __future__ import annotations

import asyncio
import io
import shutil
import subprocess

import pytest

from stromboli.api import kinds
from stromboli.cli.commanding.running import Terminal
from stromboli.cli.vc.completion import answer, answer_kubectl, candidates
from stromboli.testing.apiserver import FakeApiServer
from tests.cli.driving import TREES, drive, job, queue

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


VALUES = {
    "a job by its place": (["job", "explain", "tr"], ["train"]),
    "a job by flag": (["job", "view", "--name", ""], ["train", "tune"]),
    "a job in another namespace": (["job", "delete", "-n", "team", "-N", ""], ["theirs"]),
    "one name only": (["job", "delete", "train", ""], []),
    "a queue": (["queue", "get", ""], ["default", "research"]),
    "a queue as a value": (["job", "list", "--queue=re"], ["--queue=research"]),
    "a queue as bash cuts it": (["job", "list", "--queue", "=", "re"], ["--queue=research"]),
    "words that a flag takes": (["queue", "operate", "-a", "o"], ["open"]),
    "forms of output": (["job", "list", "-o", ""], ["json", "yaml", "wide", "name"]),
    "a namespace": (["job", "list", "-n", ""], ["default", "team"]),
    "a shell": (["completion", "z"], ["zsh"]),
    "a file is for the shell to find": (["job", "preview", "-f", ""], []),
    "flags after a switch": (["job", "list", "--all-namespaces", "--sel"], ["--selector"]),
}


@pytest.fixture
def furnished(server: FakeApiServer) -> FakeApiServer:
    for name, namespace in (("train", "default"), ("tune", "default"), ("theirs", "team")):
        server.put(kinds.JOBS, job(name, namespace))
    for name in ("default", "research"):
        server.put(kinds.QUEUES, queue(name))
    for name in ("default", "team"):
        server.put(kinds.NAMESPACES, {"metadata": {"name": name}})
    return server


async def offered(words: list[str], url: str) -> list[str]:
    terminal = Terminal(io.StringIO(), io.StringIO(), {"KUBERNETES_MASTER": url, "HOME": "/nonexistent"})
    await asyncio.to_thread(answer, TREES["vcctl"], words, terminal)
    return terminal.out.getvalue().splitlines()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("name", VALUES)
async def test_names_come_from_the_cluster(furnished: FakeApiServer, name: str) -> None:
    words, want = VALUES[name]
    assert await offered(words, furnished.url) == want


async def test_without_a_cluster_nothing_is_offered_and_nothing_complained_about() -> None:
    assert await offered(["job", "explain", ""], "http://127.0.0.1:1") == []


@pytest.mark.parametrize(("words", "want"), [(["job", "li"], "list\n:4\n"), (["job", "preview", "-f", ""], ":0\n")])
def test_kubectl_is_told_what_to_do_without_candidates(words: list[str], want: str) -> None:
    terminal = Terminal(io.StringIO(), io.StringIO(), {})
    answer_kubectl(TREES["kubectl-vc"], words, terminal)
    assert terminal.out.getvalue() == want  # type: ignore[attr-defined]


async def test_kubectl_has_a_completion_of_its_own(server: FakeApiServer) -> None:
    done = await drive("kubectl-vc completion bash", server)
    assert (done.code, "source <(kubectl completion bash)" in done.err) == (255, True)


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
