"""``stromboli-localcluster`` as a process: its one line, its signals, its exit codes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stromboli.localcluster.__main__ import main

COMMAND = [sys.executable, "-m", "stromboli.localcluster", "--crds=none", "--nodes=1"]


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            if started.poll() is None:
                started.kill()


def test_it_says_when_it_is_ready_and_stops_when_told(tmp_path: Path) -> None:
    data, state = tmp_path / "data", tmp_path / "state.json"
    with process(f"--data-dir={data}", f"--state-file={state}") as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        assert line.startswith("ready: https://127.0.0.1:")
        assert line.strip().endswith(f"KUBECONFIG={data / 'kubeconfig'}")
        assert (data / "ready").exists()
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=20) == 0
        assert running.stdout.read() == ""
    assert not (data / "ready").exists()
    assert b'"kube-system"' in state.read_bytes()


@pytest.mark.parametrize("again", [False, True], ids=["gone", "replaced"])
def test_a_data_directory_that_vanishes_ends_it_with_one_line(tmp_path: Path, again: bool) -> None:
    data, state = tmp_path / "data", tmp_path / "state.json"
    with process(f"--data-dir={data}", f"--state-file={state}") as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("ready: ")
        shutil.rmtree(data)
        if again:
            data.mkdir()
            (data / "ready").write_text("of somebody else")
        _, errors = running.communicate(timeout=30)
        assert running.returncode == 1
    assert errors == (
        f"stromboli-localcluster: error: data directory {data} is gone: stopping, and its state is not written back\n"
    )
    assert (data.exists(), state.exists()) == (again, False)
    assert not again or (data / "ready").read_text() == "of somebody else"


def test_a_corrupt_state_file_is_one_line(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text("broken")
    with process(f"--data-dir={tmp_path / 'data'}", f"--state-file={state}") as running:
        _, errors = running.communicate(timeout=30)
        assert running.returncode == 1
    assert len(errors.splitlines()) == 1
    assert errors.startswith(f"stromboli-localcluster: error: state file {state} cannot be used")
    assert state.read_text() == "broken"


def test_bad_flags_end_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--nodes=/none.yaml"]) == 1
    assert main(["--what"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("stromboli-localcluster: error: /none.yaml: No such file or directory")
    assert second.startswith("stromboli-localcluster: error: unknown flag: --what")
