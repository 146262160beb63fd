"""``stromboli-localcluster`` as a process: its one line, its signals, its exit codes."""

from __future__ import annotations

import json
import shutil
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

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
    data = tmp_path / "data"
    state = data / "state.json"
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


def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path) -> None:
    data, state = tmp_path / "data", tmp_path / "state.json"
    arguments = (f"--data-dir={data}", f"--state-file={state}")
    with process(*arguments) as running:
        caller = _Caller(running, data)
        for number in range(20):
            assert caller.send("POST", "", {"metadata": {"name": f"kept-{number}"}}) == 201
        assert caller.send("DELETE", "/kept-0") == 200
        running.kill()
        assert running.wait(timeout=20) == -signal.SIGKILL
    with process(*arguments) as running:
        caller = _Caller(running, data)
        assert caller.send("GET", "/kept-0") == 404
        assert [caller.send("GET", f"/kept-{number}") for number in range(1, 20)] == [200] * 19


class _Caller:
    """Talks to the ConfigMaps in ``default`` of a process that has said it is ready."""

    def __init__(self, running: subprocess.Popen[str], data: Path) -> None:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("ready: ")
        config = yaml.safe_load((data / "kubeconfig").read_bytes())
        self._url = f"{config['clusters'][0]['cluster']['server']}/api/v1/namespaces/default/configmaps"
        self._headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
        self._tls = ssl.create_default_context(cafile=data / "ca.crt")

    def send(self, method: str, path: str, body: object = None) -> int:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60, context=self._tls) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code


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
