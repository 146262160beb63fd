"""The process as a user starts it: exit codes, and one line for what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def scheduler(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stromboli.scheduler", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)


def test_version_is_printed() -> None:
    done = scheduler("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("stromboli-scheduler ")


WRONG = {
    "unknown flag": (["--schedule-perod=1s"], "unknown flag: --schedule-perod; did you mean --schedule-period?"),
    "not a duration": (["--schedule-period=fast"], 'invalid argument "fast" for --schedule-period'),
    "election that cannot work": (["--leader-elect-lease-duration=1s"], "--leader-elect-lease-duration"),
    "kubeconfig that is not there": (["--kubeconfig=/nowhere/config"], "/nowhere/config"),
    "policy that must be there": (["--disable-default-scheduler-config"], "give --scheduler-conf"),
}


@pytest.mark.parametrize(("arguments", "want"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_one_line_and_exit_code_one(arguments: list[str], want: str) -> None:
    done = scheduler(*arguments)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("stromboli-scheduler: error: ")]
    assert want in line
    assert "Traceback" not in done.stderr


def test_checked_policy_is_printed_and_a_bad_one_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("actions: 'enqueue, allocate'\n")
    good = scheduler(f"--check-config={path}")
    assert (good.returncode, good.stdout) == (0, "actions: enqueue, allocate\ntiers: []\n")
    path.write_text("actions: 'enqueue, alocate'\n")
    bad = scheduler(f"--check-config={path}")
    assert bad.returncode == 1
    assert "failed to find Action  alocate; did you mean allocate?" in bad.stderr
