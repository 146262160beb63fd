"""The whole course with stand-ins for kind, Docker, Helm and kubectl that note their calls, and a suite of one test."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.kind import __main__ as course
from e2e.kind import prerequisites
from e2e.kind.prerequisites import PrerequisiteError
from e2e.realcluster import binaries
from e2e.realnode.commands import CommandError

pytestmark = pytest.mark.timeout(180)
NOTE = """#!/bin/sh
call="$(basename "$0") $*"
echo "$call" >> {log}
case "$call" in {fails}) echo broken >&2; exit 1;; esac
"""
SUITE = """
import os, pathlib

def test_the_cluster_is_known():
    assert os.environ["E2E_RUNNING"] == "1"
    assert pathlib.Path(os.environ["E2E_KUBECONFIG"]).parent.name.startswith("stromboli-kind-")
    assert {passes}
"""


class Programs:
    """Stand-ins on PATH, and a log of their calls."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log = directory / "calls"
        self._bin = directory / "bin"
        self._bin.mkdir()
        monkeypatch.setenv("PATH", f"{self._bin}:/usr/bin:/bin")
        monkeypatch.setenv("TMPDIR", str(directory))
        monkeypatch.setattr("tempfile.tempdir", str(directory))
        monkeypatch.setattr(binaries, "helm", lambda: self._bin / "helm")
        self.put()

    def put(self, fails: str = "none") -> None:
        """Write them; calls that match the shell's pattern fail."""
        for name in ("kind", "docker", "kubectl", "helm"):
            (self._bin / name).write_text(NOTE.format(log=self.log, fails=fails))
            (self._bin / name).chmod(0o755)

    def leftovers(self) -> list[Path]:
        """Directories of runs."""
        return list(self.log.parent.glob("stromboli-kind-*"))

    @property
    def calls(self) -> list[str]:
        """The first words of every call."""
        return [" ".join(line.split()[:3]) for line in self.log.read_text().splitlines()]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(tmp_path, monkeypatch)


def suite(directory: Path, *, passes: bool) -> list[str]:
    file = directory / "test_of_the_suite.py"
    file.write_text(SUITE.format(passes=passes))
    return [str(file), "-q", "-p", "no:cacheprovider", f"--rootdir={directory}", "-c", "/dev/null"]


async def test_a_good_run_takes_the_cluster_and_its_files_away(programs: Programs, tmp_path: Path) -> None:
    assert await course.main_task(False, suite(tmp_path, passes=True)) == 0
    calls = programs.calls
    assert [call for call in calls if not call.startswith("docker build")] == [
        "docker version --format={{.Server.Version}}",
        "kind create cluster",
        *(["kind load docker-image"] if "docker build" in " ".join(calls) else ["kind load image-archive"]),
        "docker pull busybox:latest",
        "kind load docker-image",
        "helm install volcano",
        "kind delete cluster",
    ]
    assert not programs.leftovers()


async def test_a_failed_suite_keeps_logs_and_deletes_the_cluster(programs: Programs, tmp_path: Path) -> None:
    assert await course.main_task(False, suite(tmp_path, passes=False)) == 1
    assert programs.calls[-2:] == ["kind export logs", "kind delete cluster"]


@pytest.mark.parametrize("fails", ['"kind create"*', '"kind load"*', '"helm install"*'])
async def test_whatever_step_fails_the_cluster_is_deleted(programs: Programs, tmp_path: Path, fails: str) -> None:
    programs.put(fails)
    with pytest.raises(CommandError, match="broken"):
        await course.main_task(False, suite(tmp_path, passes=True))
    assert programs.calls[-1] == "kind delete cluster"


async def test_logs_that_cannot_be_had_do_not_keep_the_cluster(programs: Programs, tmp_path: Path) -> None:
    programs.put('"kind export"*')
    assert await course.main_task(False, suite(tmp_path, passes=False)) == 1
    assert programs.calls[-1] == "kind delete cluster"


async def test_a_cluster_that_is_kept_is_named(
    programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await course.main_task(True, suite(tmp_path, passes=True)) == 0
    assert "kind delete cluster" not in programs.calls
    assert "when done: kind delete cluster --name=stromboli-" in capsys.readouterr().out


async def test_a_daemon_that_does_not_answer_is_said_before_anything_is_made(programs: Programs) -> None:
    programs.put('"docker version"*')
    with pytest.raises(PrerequisiteError, match="Docker's daemon does not answer"):
        await course.main_task(False, [])
    assert programs.calls == ["docker version --format={{.Server.Version}}"]


def test_every_missing_program_is_named_with_the_next_step() -> None:
    with pytest.raises(PrerequisiteError) as refused:
        prerequisites.check(which=lambda name: name == "docker", found_helm=None)
    lines = str(refused.value).splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["kind", "kubectl", "helm"]
    assert "sigs.k8s.io/kind" in lines[0]
