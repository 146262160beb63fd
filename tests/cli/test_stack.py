"""The stack: one run a directory, one's own log lines, and what is said when something goes wrong."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from stromboli.cli import stack
from stromboli.cli.stack import CLUSTER, Stack, StackError, StackOptions, announces

LEFT = "a line of an earlier run"


def options(directory: Path, *arguments: str) -> StackOptions:
    """Only the embedded cluster, with as little in it as possible."""
    return StackOptions(
        directory=directory, nodes=1, cluster_arguments=("--crds=none", *arguments), with_processes=False
    )


def contents(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its content and the time of its last change."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


async def test_a_second_start_says_so_and_touches_nothing(tmp_path: Path) -> None:
    async with Stack(options(tmp_path)) as first:
        before = contents(tmp_path)
        with pytest.raises(StackError) as refused:
            async with Stack(options(tmp_path)):
                raise AssertionError("started")
        assert contents(tmp_path) == before
        first.check()
        assert str(refused.value) == (
            f"already up (pid {first.parts[CLUSTER].process.pid}): export KUBECONFIG={tmp_path / 'kubeconfig'}; "
            "stop it with Ctrl-C, or use another --dir"
        )
    async with Stack(options(tmp_path)) as again:
        again.check()


async def test_a_failed_start_shows_the_lines_of_this_run_only(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "localcluster.log").write_text(f"{LEFT}\n")
    with pytest.raises(StackError) as failed:
        async with Stack(options(tmp_path, "--nodes=/none.yaml")):
            raise AssertionError("started")
    first, told, where = str(failed.value).splitlines()
    assert first == "localcluster ended with exit code 1"
    assert told.startswith("stromboli-localcluster: error: /none.yaml: No such file or directory")
    assert where == f"log: {tmp_path / 'logs' / 'localcluster.log'}"
    assert (tmp_path / "logs" / "localcluster.log").read_text().startswith(LEFT)


READY = {
    "of this run": ('{"pid": 7}', True),
    "of an earlier run": ('{"pid": 8}', False),
    "of no cluster": ("{}", False),
    "half written": ("{", False),
}


@pytest.mark.parametrize("name", READY)
def test_a_ready_file_counts_only_if_it_is(name: str, tmp_path: Path) -> None:
    content, want = READY[name]
    (tmp_path / "ready").write_text(content)
    assert announces(tmp_path / "ready", 7) is want


async def test_a_directory_that_vanishes_is_said_in_one_line(tmp_path: Path) -> None:
    directory = tmp_path / "up"
    async with Stack(replace(options(directory), state_file=directory / "state.json")) as stack:
        shutil.rmtree(directory)
        with pytest.raises(StackError) as gone:
            stack.check()
    assert str(gone.value) == f"{directory} is gone: stopping, and its state is not written back"
    assert not directory.exists()


async def test_what_has_ended_is_started_again_and_the_rest_is_left(tmp_path: Path) -> None:
    async with Stack(options(tmp_path)) as stack:
        assert await stack.revive() == []
        first = stack.kill(CLUSTER)
        await first.process.wait()
        assert await stack.revive() == [CLUSTER]
        assert stack.parts[CLUSTER].process.pid != first.process.pid
        stack.check()


async def test_a_start_that_takes_long_says_what_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "REMINDER_SECONDS", 0.0)
    monkeypatch.setattr(stack, "READY_SECONDS", 0.0)
    told: list[str] = []
    with pytest.raises(StackError) as failed:
        async with Stack(options(tmp_path), progress=told.append):
            raise AssertionError("started")
    waited = f"its file {tmp_path / 'ready'}"
    assert str(failed.value).startswith(f"localcluster was not ready after 0 s (waited for {waited})")
    monkeypatch.setattr(stack, "READY_SECONDS", 150.0)
    async with Stack(options(tmp_path), progress=told.append):
        assert f"still waiting for localcluster to be ready ({waited})" in told
