"""The script with which PyTorch's workers wait for their master, run with what images have to offer (spec 02 22.5)."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.controllers.building import job
from tests.controllers.job.test_plugins import decorated

FULL = '[ "$1" = -z ] && exec bash -c "exec 3<>/dev/tcp/$2/$3"'
WITHOUT_Z = '[ "$1 $5" = "-w -e" ] && bash -c "exec 3<>/dev/tcp/$3/$4" && exec "$6"'
IMAGES = {"with an nc that looks only": FULL, "with busybox's smallest nc": WITHOUT_Z, "with bash and no nc": None}
"""By what is special of an image, what its nc does; a command that it does not understand fails."""


def script(port: int) -> str:
    """What the init container runs, for a master of this machine; it gives up after the first attempt."""
    asked = job("torch").task("master", 1).task("worker", 1)
    wait = ["--wait-master-enabled", "--wait-master-timeout=0", f"--port={port}"]
    (waiter,) = decorated(asked.spec(plugins={"pytorch": wait}), 0, "worker")["spec"]["initContainers"]
    return str(waiter["command"][2]).replace("torch-master-0.torch", "127.0.0.1")


def wait(port: int, programs: Path, nc: str | None) -> subprocess.CompletedProcess[str]:
    """Run the script where a directory holds all programs that there are."""
    for name in ("bash", "true", "sleep"):
        (programs / name).symlink_to(str(shutil.which(name)))
    if nc is not None:
        (programs / "nc").write_text(f"#!/bin/sh\n{nc}\n")
        (programs / "nc").chmod(0o755)
    command = ["/bin/sh", "-c", script(port)]
    return subprocess.run(command, env={"PATH": str(programs)}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("nc", IMAGES.values(), ids=IMAGES.keys())
def test_the_wait_ends_when_the_master_answers(tmp_path: Path, nc: str | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as master:
        done = wait(master.getsockname()[1], tmp_path, nc)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("nc", IMAGES.values(), ids=IMAGES.keys())
def test_a_master_that_never_answers_is_given_up_with_a_word_on_it(tmp_path: Path, nc: str | None) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        done = wait(port, tmp_path, nc)
    assert (done.returncode, done.stderr) == (1, f"127.0.0.1:{port} does not answer after 0 s\n")
