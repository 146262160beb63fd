"""A running cluster that kubectl talks to, one for all tests; each test works in a namespace of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.localcluster.server.kubectl import Kubectl

START_SECONDS = 30.0


@pytest.fixture(scope="session")
def cluster_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Kubeconfig of an embedded cluster with two nodes, in a process of its own."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    directory = tmp_path_factory.mktemp("cluster")
    output = directory / "output"
    command = [sys.executable, "-m", "stromboli.localcluster", "--data-dir", str(directory), "--nodes", "2"]
    with (
        output.open("wb") as log,
        subprocess.Popen([*command, "--listen", "127.0.0.1:0"], stdout=log, stderr=log) as process,
    ):
        try:
            _wait_ready(directory / "ready", process, output)
            yield directory / "kubeconfig"
        finally:
            process.terminate()
            process.wait(10)


def _wait_ready(ready: Path, process: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"the cluster did not start:\n{output.read_text()}")
        time.sleep(0.02)  # a file is the interface; there is nothing to wait on


@pytest.fixture
def kubectl(cluster_kubeconfig: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Kubectl:
    """kubectl in a fresh namespace."""
    name = request.node.name.partition("[")[0].removeprefix("test_").replace("_", "-")[:40].strip("-")
    namespace = f"{name}-{os.urandom(3).hex()}"
    found = Kubectl(cluster_kubeconfig, namespace, tmp_path)
    found("create", "namespace", namespace)
    return found
