"""vcctl, the short commands and the kubectl plugins against a whole control plane, as the programs they are."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from e2e.cluster import Cluster, eventually, queue, vcjob
from stromboli.api.kinds import JOBS, QUEUES

BIN = Path(sys.executable).parent
KUBECTL = shutil.which("kubectl")


class Shell:
    """Runs programs with the cluster's kubeconfig."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self.namespace = namespace
        path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": path}

    async def run(self, *words: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        process = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=self._environment
        )
        out, err = await asyncio.wait_for(process.communicate(), 60)
        return process.returncode or 0, out.decode(), err.decode()

    async def ok(self, *words: str) -> str:
        """Standard output of a program that must succeed."""
        code, out, err = await self.run(*words)
        assert code == 0, f"{' '.join(words)}: exit {code}\n{out}\n{err}"
        return out


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
    await eventually(lambda: cluster.queue(name), lambda seen: seen["status"]["state"] == "Open")
    await shell.ok("vcctl", "queue", "operate", "-n", name, "-a", "update", "-w", "5")
    assert (await shell.ok("vcctl", "queue", "get", "-n", name)).splitlines()[1].split()[:3] == [name, "5", "Open"]
    await shell.ok("vcctl", "queue", "operate", "-n", name, "-a", "close")
    await eventually(lambda: cluster.queue(name), lambda seen: seen["status"]["state"] == "Closed")
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


async def explained(shell: Shell, job: str, reason: str) -> dict[str, str]:
    """The explanation of a waiting job, once the scheduler has come to this reason."""

    async def ask() -> dict[str, str]:
        text = await shell.ok("vcctl", "job", "explain", job, "-n", shell.namespace, "-o", "json")
        found: dict[str, str] = json.loads(text)
        return found

    return await eventually(ask, lambda seen: seen["reason"] == reason, what=f"{job} waits for {reason}")


WAITING = {
    "no node has the label": (
        {"replicas": 2},
        {"nodeSelector": {"disk": "fast"}},
        "NodesRefuse",
        "no node takes a pod of role worker: 5 node(s) didn't match Pod's node affinity/selector",
    ),
    "a pod is larger than any node": (
        {"replicas": 1, "cpu": "9"},
        {},
        "NodesRefuse",
        "no node takes a pod of role worker: 5 Insufficient cpu",
    ),
    "the cluster is too small": (
        {"replicas": 9, "cpu": "8"},
        {},
        "ClusterOvercommitted",
        "the group needs cpu 72; the cluster admits cpu 48 (1.2 times its size)",
    ),
    "the pods have gates": (
        {"replicas": 2},
        {"schedulingGates": [{"name": "example.com/wait"}]},
        "PodsGated",
        "2 of its 2 pods have scheduling gates",
    ),
    "there is room for a part of the gang": (
        {"replicas": 6, "cpu": "6"},
        {},
        "GangIncomplete",
        "there is room for 5 of the 6 pods that it lacks (worker cpu 6)",
    ),
}


@pytest.mark.parametrize("name", WAITING)
async def test_a_waiting_job_is_explained(shell: Shell, cluster: Cluster, name: str) -> None:
    shape, pod_spec, reason, want = WAITING[name]
    job = vcjob("waits", **shape)  # type: ignore[arg-type]
    job["spec"]["tasks"][0]["template"]["spec"].update(pod_spec)
    await cluster.create(JOBS, job)
    found = await explained(shell, "waits", reason)
    assert found["sentence"].startswith(f"{shell.namespace}/waits waits: {want}")


async def test_a_queue_that_is_full_and_then_closed_is_named(shell: Shell, cluster: Cluster) -> None:
    name = f"small-{os.getpid()}"
    await cluster.create(QUEUES, queue(name, capability={"cpu": "1"}))
    await eventually(lambda: cluster.queue(name), lambda seen: seen.get("status", {}).get("state") == "Open")
    await cluster.create(JOBS, vcjob("waits", queue=name, cpu="1"))
    found = await explained(shell, "waits", "QueueQuotaInsufficient")
    assert f"the group needs cpu 2; queue {name} may hold cpu 1" in found["sentence"]
    await shell.ok("vcctl", "queue", "operate", "-n", name, "-a", "close")
    found = await explained(shell, "waits", "QueueNotOpen")
    assert f"waits: queue {name} is Clos" in found["sentence"]
    await cluster.delete(JOBS, "waits")
    await cluster.gone(JOBS, "waits")
    await cluster.delete(QUEUES, name)


async def test_a_preview_comes_true(shell: Shell, cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(vcjob("coming", replicas=3, cpu="2", command="sleep 2")))
    where = ("-n", shell.namespace)
    told = json.loads(await shell.ok("vcctl", "job", "preview", "-f", str(file), *where, "-o", "json"))
    assert (told["verdict"], sum(told["placements"].values())) == ("FitsNow", 3)
    assert await shell.ok("vcctl", "job", "list", *where) == "No resources found\n"
    await shell.ok("vcctl", "job", "run", "-f", str(file), *where)
    await cluster.phase_is("coming", "Running", "Completed")


async def test_a_snapshot_of_a_live_cluster_is_simulated(shell: Shell, tmp_path: Path) -> None:
    snapshot, job = tmp_path / "snapshot.json", tmp_path / "job.yaml"
    job.write_text(json.dumps(vcjob("what-if", replicas=5, cpu="8")))
    assert (await shell.ok("vcctl", "snapshot", str(snapshot))).startswith("wrote ")
    out = await shell.ok("vcctl", "simulate", str(snapshot), "--with", str(job))
    assert "5 pods start, 0 are evicted, 0 gangs wait." in out.splitlines()[0]


async def test_the_trial_of_a_newcomer(shell: Shell, cluster: Cluster) -> None:
    """Submit a gang, find out why it waits, make room, see it finish: with what --help offers."""
    for screen in (("vcctl", "--help"), ("vcctl", "job", "--help"), ("vsub", "--help"), ("vcancel", "--help")):
        assert "Usage:" in await shell.ok(*screen)
    size = ("-N", shell.namespace, "-r", "4", "-m", "4", "-R", "cpu=8", "-L", "cpu=8")
    await shell.ok("vsub", "-n", "hog", *size, "-c", "sleep 600")
    await cluster.phase_is("hog", "Running")
    await shell.ok("vsub", "-n", "mine", *size, "-c", "sleep 1")
    found = await explained(shell, "mine", "ClusterOvercommitted")
    assert "wait for running work to end" in found["nextStep"]
    assert await shell.ok("vcancel", "-n", "hog", "-N", shell.namespace) == "cancel job hog successfully\n"
    await cluster.phase_is("mine", "Running", "Completed")
