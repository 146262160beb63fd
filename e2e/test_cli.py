"""vcctl, the short commands and the kubectl plugins against a whole control plane, as the programs they are."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from e2e.cluster import Cluster, eventually, vcjob
from e2e.shell import Shell
from stromboli.api.kinds import JOBS, QUEUES

KUBECTL = shutil.which("kubectl")


@pytest.fixture
def shell(kubeconfig: Path, cluster: Cluster) -> Shell:
    return Shell(kubeconfig, cluster.namespace)


async def test_a_job_from_run_to_delete(shell: Shell, cluster: Cluster) -> None:
    where = ("-n", shell.namespace)
    assert await shell.ok("vcctl", "job", "run", "-N", "sim", "-r", "2", "-m", "2", *where) == (
        "run job sim successfully\n"
    )
    await cluster.phase_is("sim", "Running", "Completed")
    header, row = (await shell.ok("vcctl", "job", "list", *where)).splitlines()
    assert header.split()[:3] == ["Name", "Creation", "Phase"]
    assert row.split()[0] == "sim"
    view = await shell.ok("vcctl", "job", "view", "-N", "sim", *where)
    assert "Kind:       \tJob\n" in view
    assert "Events:" in view
    assert await shell.ok("vcctl", "job", "delete", "-N", "sim", *where) == "delete job sim successfully\n"
    assert await shell.ok("vcctl", "job", "list", *where) == "No resources found\n"


async def test_suspending_and_resuming(shell: Shell, cluster: Cluster) -> None:
    await shell.ok("vsub", "-n", "long", "-N", shell.namespace, "-c", "sleep 300")
    await cluster.phase_is("long", "Running")
    assert await shell.ok("vsuspend", "-n", "long", "-N", shell.namespace) == ""
    await cluster.phase_is("long", "Aborted")
    assert await shell.ok("vresume", "-n", "long", "-N", shell.namespace) == ""
    await cluster.phase_is("long", "Running")
    assert (await shell.ok("vjobs", "-N", shell.namespace)).splitlines()[1].split()[2] == "Running"
    assert await shell.ok("vcancel", "-n", "long", "-N", shell.namespace) == "cancel job long successfully\n"


async def test_a_queue_from_create_to_delete(shell: Shell, cluster: Cluster) -> None:
    name = f"queue-of-{os.getpid()}"
    assert await shell.ok("vcctl", "queue", "create", "-n", name, "-w", "3") == ""
    await eventually(lambda: cluster.queue(name), lambda seen: seen.get("status", {}).get("state") == "Open")
    await shell.ok("vcctl", "queue", "operate", "-n", name, "-a", "update", "-w", "5")
    assert (await shell.ok("vcctl", "queue", "get", "-n", name)).splitlines()[1].split()[:3] == [name, "5", "Open"]
    await shell.ok("vcctl", "queue", "operate", "-n", name, "-a", "close")
    await eventually(lambda: cluster.queue(name), lambda seen: seen.get("status", {}).get("state") == "Closed")
    assert await shell.ok("vcctl", "queue", "delete", "-n", name) == ""
    await cluster.gone(QUEUES, name)


async def test_a_refusal_is_told_with_its_reason(shell: Shell) -> None:
    code, out, err = await shell.run("vcctl", "job", "run", "-N", "x", "-r", "1", "-m", "2", "-n", shell.namespace)
    assert (code, out) == (255, "")
    assert err.startswith("Failed to run job: ")
    assert "'minAvailable' should not be greater than total replicas in tasks" in err


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on PATH")
class TestKubectl:
    """kubectl finds both plugins on the PATH and hands the words over."""

    async def test_create_vcjob(self, shell: Shell, cluster: Cluster) -> None:
        out = await shell.ok(
            "kubectl", "create", "vcjob", "train", "--image=busybox", "--replicas=3", "--requests=cpu=100m",
            "-n", shell.namespace, "--", "sleep", "1",
        )  # fmt: skip
        assert out == "job.batch.volcano.sh/train created\n"
        job = await cluster.phase_is("train", "Running", "Completed")
        assert job["spec"]["minAvailable"] == 3

    async def test_vc_is_vcctl(self, shell: Shell) -> None:
        assert await shell.ok("kubectl", "vc", "job", "list", "-n", shell.namespace) == "No resources found\n"
        code, _, err = await shell.run("kubectl", "vc", "job", "lst")
        assert code == 1
        assert "did you mean 'list'?" in err


async def test_bash_completes_commands_flags_and_names(shell: Shell, cluster: Cluster) -> None:
    """A real bash: what it holds after the function that was registered for ``vcctl`` has run."""
    await cluster.create(JOBS, vcjob("trains-for-ever", command="sleep 600"))
    for words, want in (
        ("job expl", ["explain"]),
        ("job run --lim", ["--limits"]),
        (f"job explain -n {shell.namespace} tr", ["trains-for-ever"]),
        ("queue get defau", ["default"]),
    ):
        line = f"vcctl {words}"
        script = (
            'source <(vcctl completion bash); read -ra COMP_WORDS <<< "$LINE"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1));'
            '$(complete -p vcctl | grep -o "_[a-z_]*complete"); printf "%s\\n" "${COMPREPLY[@]}"'
        )
        script = script.replace("$(complete", "f=$(complete").replace('complete");', 'complete"); $f;')
        assert (await shell.ok("env", f"LINE={line}", "bash", "-c", script)).splitlines() == want


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on PATH")
async def test_kubectl_completes_its_plugin(shell: Shell, cluster: Cluster, tmp_path: Path) -> None:
    """kubectl asks a program of a certain name, which an installation makes of the package's entry point."""
    await cluster.create(JOBS, vcjob("trains-for-ever", command="sleep 600"))
    program = tmp_path / "kubectl_complete-vc"
    program.write_text(f"#!{sys.executable}\nfrom stromboli.cli import vcctl\nvcctl.kubectl_complete_vc()\n")
    program.chmod(0o755)
    shell.environment["PATH"] = f"{tmp_path}{os.pathsep}{shell.environment['PATH']}"
    for words, want in (
        (["vc", "job", "expl"], "explain"),
        (["vc", "explain", "-n", shell.namespace, "trai"], "trains-for-ever"),
        (["vc", "job", "list", "--queue", "defa"], "default"),
    ):
        offered = (await shell.ok("kubectl", "__complete", *words)).splitlines()
        assert offered[0] == want, offered


async def test_a_preview_comes_true(shell: Shell, cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(vcjob("coming", replicas=3, cpu="2", command="sleep 2")))
    where = ("-n", shell.namespace)
    told = json.loads(await shell.ok("vcctl", "job", "preview", "-f", str(file), *where, "-o", "json"))
    assert (told["verdict"], sum(told["placements"].values())) == ("FitsNow", 3)
    assert await shell.ok("vcctl", "job", "list", *where) == "No resources found\n"
    await shell.ok("vcctl", "job", "run", "-f", str(file), *where)
    await cluster.phase_is("coming", "Running", "Completed")


@pytest.mark.simulated_nodes
async def test_a_snapshot_of_a_live_cluster_is_simulated(shell: Shell, tmp_path: Path) -> None:
    snapshot, job = tmp_path / "snapshot.json", tmp_path / "job.yaml"
    job.write_text(json.dumps(vcjob("what-if", replicas=5, cpu="8")))
    assert (await shell.ok("vcctl", "snapshot", str(snapshot))).startswith("wrote ")
    out = await shell.ok("vcctl", "simulate", str(snapshot), "--with", str(job))
    assert "5 pods start, 0 are evicted, 0 gangs wait." in out.splitlines()[0]


@pytest.mark.simulated_nodes
async def test_the_trial_of_a_newcomer(shell: Shell, cluster: Cluster) -> None:
    """Submit a gang, find out why it waits, make room, see it finish: with what --help offers."""
    for screen in (("vcctl", "--help"), ("vcctl", "job", "--help"), ("vsub", "--help"), ("vcancel", "--help")):
        assert "Usage:" in await shell.ok(*screen)
    size = ("-N", shell.namespace, "-r", "4", "-m", "4", "-R", "cpu=8", "-L", "cpu=8")
    await shell.ok("vsub", "-n", "hog", *size, "-c", "sleep 600")
    await cluster.phase_is("hog", "Running")
    await shell.ok("vsub", "-n", "mine", *size, "-c", "sleep 1")
    found = await eventually(lambda: shell.explain("mine"), lambda seen: seen["reason"] == "ClusterOvercommitted")
    assert "wait for running work to end" in found["nextStep"]
    assert await shell.ok("vcancel", "-n", "hog", "-N", shell.namespace) == "cancel job hog successfully\n"
    await cluster.phase_is("mine", "Running", "Completed")
