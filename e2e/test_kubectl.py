"""An unmodified kubectl drives the system and reads what it wants to know."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from e2e.cluster import Cluster, eventually, vcjob
from stromboli.api.kinds import JOBS

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "demo"
GUIDE = ROOT / "docs" / "guide" / "admission.md"
CURL = shutil.which("curl")
KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on PATH")


class Kubectl:
    """kubectl with a kubeconfig and a namespace."""

    def __init__(self, kubeconfig: Path, namespace: str, home: Path) -> None:
        self._base = [f"--kubeconfig={kubeconfig}", f"--namespace={namespace}", f"--cache-dir={home}"]

    async def run(self, *arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        assert KUBECTL is not None
        process = await asyncio.create_subprocess_exec(
            KUBECTL, *self._base, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(stdin.encode() if stdin else None), 60)
        return process.returncode or 0, out.decode(), err.decode()

    async def ok(self, *arguments: str, stdin: str | None = None) -> str:
        """Standard output of a call that must succeed."""
        code, out, err = await self.run(*arguments, stdin=stdin)
        assert code == 0, f"kubectl {' '.join(arguments)}: exit {code}\n{out}\n{err}"
        return out


@pytest.fixture
def kubectl(kubeconfig: Path, cluster: Cluster, tmp_path: Path) -> Kubectl:
    return Kubectl(kubeconfig, cluster.namespace, tmp_path)


async def test_a_job_from_apply_to_logs(kubectl: Kubectl) -> None:
    assert await kubectl.ok("apply", "-f", str(EXAMPLES / "10-gang.yaml")) == "job.batch.volcano.sh/gang created\n"
    await kubectl.ok("wait", "--for=jsonpath={.status.state.phase}=Completed", "vcjob/gang", "--timeout=60s")
    header, row = (await kubectl.ok("get", "vcjob")).splitlines()
    assert header.split()[:3] == ["NAME", "STATUS", "MINAVAILABLE"]
    assert row.split()[:3] == ["gang", "Completed", "4"]
    assert "gang-worker-0" in await kubectl.ok("get", "pods", "-o", "name", "-l", "volcano.sh/job-name=gang")
    await kubectl.ok("logs", "gang-worker-0")
    description = await kubectl.ok("describe", "vcjob", "gang")
    assert "Completed" in description
    assert await kubectl.ok("delete", "vcjob", "gang") == 'job.batch.volcano.sh "gang" deleted\n'
    assert (await kubectl.ok("get", "pods")) == ""


async def test_applying_the_same_manifest_twice_is_accepted(kubectl: Kubectl, cluster: Cluster) -> None:
    await kubectl.ok("apply", "-f", str(EXAMPLES / "30-too-big.yaml"))
    before = await cluster.job("too-big")
    await kubectl.ok("apply", "-f", str(EXAMPLES / "30-too-big.yaml"))
    after = await cluster.job("too-big")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["tasks"][0]["replicas"] == 40


async def test_a_waiting_gang_says_why_in_describe(kubectl: Kubectl, cluster: Cluster) -> None:
    await kubectl.ok("apply", "--server-side", "-f", str(EXAMPLES / "30-too-big.yaml"))
    group = await eventually(
        lambda: cluster.pod_group("too-big"), lambda seen: seen.get("status", {}).get("conditions")
    )
    text = await kubectl.ok("describe", "podgroup", group["metadata"]["name"])
    assert "ClusterOvercommitted" in text
    assert "The group needs cpu 160" in text


async def test_a_dry_run_on_the_server_is_judged_but_not_kept(kubectl: Kubectl, cluster: Cluster) -> None:
    out = await kubectl.ok("create", "--dry-run=server", "-o", "json", "-f", str(EXAMPLES / "10-gang.yaml"))
    assert json.loads(out)["spec"]["maxRetry"] == 3
    assert await cluster.client.list(JOBS, cluster.namespace) == []


BROKEN = {
    "a list where a number belongs": (
        "spec: {minAvailable: [1], tasks: []}",
        "spec.minAvailable: Invalid type: expected `int`, got `array`",
    ),
    "a task without name twice": (
        "spec: {minAvailable: 1, tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}},"
        " {name: a, replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}]}",
        "duplicated task name a",
    ),
    "more pods wanted than there are": (
        "spec: {minAvailable: 9, tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: c,"
        " image: i}]}}}]}",
        "job 'minAvailable' should not be greater than total replicas in tasks",
    ),
    "an unknown field": (
        "spec: {minAvailable: 1, tusks: [], tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: c,"
        " image: i}]}}}]}",
        'strict decoding error: unknown field "spec.tusks"',
    ),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_manifest_is_refused_with_exit_code_one(kubectl: Kubectl, name: str) -> None:
    body, want = BROKEN[name]
    manifest = f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: broken}}\n{body}\n"
    code, _, err = await kubectl.run("create", "-f", "-", stdin=manifest)
    assert code == 1
    assert want in err


async def test_text_that_is_no_yaml_is_refused_with_exit_code_one(kubectl: Kubectl) -> None:
    code, _, err = await kubectl.run("create", "-f", "-", stdin="{{ not yaml")
    assert code == 1
    assert "error" in err


@pytest.mark.skipif(CURL is None, reason="curl is not on PATH")
async def test_the_causes_of_a_refusal_are_read_as_the_guide_says(
    kubeconfig: Path, cluster: Cluster, tmp_path: Path
) -> None:
    [asking] = re.findall(r"^\$ (curl (?:.*\\\n)*.*)$", GUIDE.read_text(), re.MULTILINE)
    job = vcjob("train", queue="nowhere")
    job["spec"]["volumes"] = [{"mountPath": "/data"}]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    assert KUBECTL is not None
    proxy = await asyncio.create_subprocess_exec(
        KUBECTL, f"--kubeconfig={kubeconfig}", "proxy", "--port=0", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert proxy.stdout is not None
        address = (await asyncio.wait_for(proxy.stdout.readline(), 60)).decode().split()[-1]
        asking = asking.replace("127.0.0.1:8001", address).replace("/default/", f"/{cluster.namespace}/")
        asked = await asyncio.create_subprocess_shell(asking, cwd=tmp_path, stdout=asyncio.subprocess.PIPE)
        answer, _ = await asyncio.wait_for(asked.communicate(), 60)
    finally:
        proxy.terminate()
        await proxy.wait()
    fields = [cause["field"] for cause in json.loads(answer)["details"]["causes"]]
    assert fields == ["spec.volumes[0]", "spec.queue"]
