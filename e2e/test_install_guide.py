"""The guide's commands for Helm, typed as they stand there: install, upgrade, uninstall, moving over from Volcano.

Each runs on an embedded cluster and on a real control plane of its own, because the chart's objects are cluster-wide.
There are no pods here to become available, so ``kubectl wait`` is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from e2e import stand_in_charts
from e2e.cluster import eventually, vcjob
from e2e.realcluster import binaries
from e2e.realcluster.cluster import NEEDED, RealCluster
from e2e.realcluster.rendering import CHART
from stromboli.api.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    JOBS,
    MUTATING_WEBHOOKS,
    QUEUES,
    VALIDATING_WEBHOOKS,
    Kind,
)
from stromboli.kube.client import Client
from stromboli.kube.errors import ApiError, NotFound
from stromboli.kube.json import JsonObject
from stromboli.localcluster.options import ClusterSettings
from stromboli.localcluster.server import LocalCluster

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide" / "install.md"
KUBECTL = shutil.which("kubectl")
HELM = binaries.helm()
WRITTEN = ("values.yaml", "volcano-scheduler.conf")
"""Files that the guide's commands write."""
COMMAND_SECONDS = 240.0
PATIENTLY = pytest.mark.timeout(900)
"""Helm sends the CRDs back and forth, a megabyte of them; a busy machine takes its time for that."""
pytestmark = [
    pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on PATH"),
    pytest.mark.skipif(HELM is None, reason="helm is neither built nor on PATH: python -m e2e.realcluster --build"),
]


def commands(section: str) -> list[str]:
    """The code blocks of a section of the guide, without those that show a session (``$ ...``)."""
    text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert text, f"the guide has no section {section}"
    blocks = re.findall(r"^ *```\n(.*?)^ *```$", text[1], re.MULTILINE | re.DOTALL)
    return [block for block in blocks if not block.lstrip().startswith("$")]


class Shell:
    """A shell whose kubectl and helm talk to one cluster."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        assert HELM is not None
        self._directory = home
        (home / "bin").mkdir()
        (home / "bin" / "helm").symlink_to(HELM)
        (home / "bin" / "stromboli-scheduler").symlink_to(Path(sys.executable).with_name("stromboli-scheduler"))
        path = f"{home / 'bin'}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    async def run(self, script: str) -> tuple[int, str]:
        """Exit code and all output. Relative paths are the repository's; files to write are in the test's directory."""
        for name in WRITTEN:
            script = script.replace(name, str(self._directory / name))
        process = await asyncio.create_subprocess_exec(
            "bash", "-euo", "pipefail", "-c", script, cwd=ROOT, env=self._environment,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            out, _ = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
        finally:
            if process.returncode is None:  # with all that the script has started
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return process.returncode or 0, out.decode()

    async def type(self, section: str) -> None:
        """Type all commands of a section."""
        for block in commands(section):
            await self.succeeds(re.sub(r"^kubectl -n \S+ wait .*$", "", block, flags=re.MULTILINE))

    async def succeeds(self, script: str) -> str:
        """Run a script that must not fail; answers its output."""
        code, output = await self.run(script)
        assert code == 0, f"{script}\n{output}"
        return output


@pytest_asyncio.fixture(loop_scope="session", params=["embedded", "real"])
async def kubeconfig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Path]:
    """Kubeconfig of a cluster with nothing in it."""
    if request.param == "embedded":
        async with LocalCluster(ClusterSettings(data_dir=tmp_path / "cluster", crds="none")) as embedded:
            yield Path(embedded.kubeconfig)
        return
    found = {name: path for name in NEEDED if (path := binaries.find(name))}
    if len(found) < len(NEEDED):
        pytest.skip("the real control plane is not built: python -m e2e.realcluster --build")
    async with RealCluster(tmp_path / "cluster", found, nodes=1) as real:
        yield real.kubeconfig


@pytest.fixture
def shell(kubeconfig: Path, tmp_path: Path) -> Shell:
    return Shell(kubeconfig, tmp_path)


@pytest_asyncio.fixture(loop_scope="session")
async def administrator(kubeconfig: Path) -> AsyncIterator[Client]:
    async with await Client.connect(kubeconfig=str(kubeconfig), qps=0) as client:
        yield client


async def webhooks(client: Client) -> set[str]:
    """Names of all webhook configurations."""
    listed = [*await client.list(MUTATING_WEBHOOKS), *await client.list(VALIDATING_WEBHOOKS)]
    return {item["metadata"]["name"] for item in listed}


async def uids(client: Client) -> dict[str, str]:
    """UIDs of the CRDs, and of what users made."""
    listed = [*await client.list(CUSTOM_RESOURCE_DEFINITIONS), *await client.list(JOBS), *await client.list(QUEUES)]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in listed}


async def _is_served(client: Client, kind: Kind) -> bool:
    try:
        await client.list(kind)
    except NotFound:
        return False
    return True


async def served(client: Client, *kinds: Kind) -> None:
    """Wait until new kinds can be used; Helm does not wait for that."""
    for kind in kinds:
        await eventually(partial(_is_served, client, kind), bool, what=f"{kind.resource} served")


async def make_work(client: Client, name: str) -> None:
    """A queue and a job in it; a webhook that is told of them must not be registered."""
    await served(client, JOBS, QUEUES)
    await client.create(QUEUES, {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}})
    await client.create(JOBS, vcjob(name, queue=name), "default")


async def definition(client: Client) -> JsonObject:
    """The CRD of vcjobs."""
    return await client.get(CUSTOM_RESOURCE_DEFINITIONS, JOBS.resource)


def columns(crd: JsonObject) -> set[str]:
    """Printer columns of a CRD."""
    return {column["name"] for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]}


async def scheduler(client: Client, release: str) -> JsonObject:
    """The scheduler's Deployment."""
    return await client.get(DEPLOYMENTS, f"{release}-scheduler", "volcano-system")


def container(deployment: JsonObject) -> JsonObject:
    """The only container of a Deployment."""
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(only)


@PATIENTLY
async def test_a_release_from_install_to_uninstall_keeps_definitions_and_jobs(
    shell: Shell, administrator: Client
) -> None:
    await shell.type("Install")
    deployments = await administrator.list(DEPLOYMENTS, "volcano-system")
    assert sorted(item["metadata"]["name"] for item in deployments) == [
        "stromboli-admission",
        "stromboli-controllers",
        "stromboli-scheduler",
    ]
    assert len(await webhooks(administrator)) == 7
    await served(administrator, JOBS)
    with pytest.raises(ApiError, match="volcano"):
        await administrator.create(JOBS, vcjob("early"), "default")  # nobody answers reviews here
    before = await uids(administrator)
    upgrade, _ = commands("Upgrade")
    await shell.succeeds(upgrade)
    assert await uids(administrator) == before
    uninstall, delete_everything = commands("Uninstall")
    await shell.succeeds(uninstall)
    assert await webhooks(administrator) == set()
    assert await administrator.list(DEPLOYMENTS, "volcano-system") == []
    await make_work(administrator, "kept")
    before = await uids(administrator)
    await shell.type("Install")
    assert await uids(administrator) == before
    async with looked_at_again(administrator):
        await shell.succeeds(f"{uninstall}\n{delete_everything}")
    assert await administrator.list(CUSTOM_RESOURCE_DEFINITIONS) == []


@asynccontextmanager
async def looked_at_again(administrator: Client) -> AsyncIterator[None]:
    """A definition whose storage was not ready when the API server wanted to empty it waits for its next try, which
    comes after twice the time each time, for minutes in the end. Any change makes the server look at once.
    """

    async def touch() -> None:
        for number in itertools.count():
            await asyncio.sleep(10)
            for one in await administrator.list(CUSTOM_RESOURCE_DEFINITIONS):
                if "deletionTimestamp" in one["metadata"]:
                    patch = {"metadata": {"annotations": {"looked-at": str(number)}}}
                    with contextlib.suppress(ApiError):
                        await administrator.patch(CUSTOM_RESOURCE_DEFINITIONS, one["metadata"]["name"], patch)

    touching = asyncio.create_task(touch())
    try:
        yield
    finally:
        touching.cancel()


@PATIENTLY
async def test_an_upgrade_brings_new_schemas_and_keeps_jobs(
    shell: Shell, administrator: Client, tmp_path: Path
) -> None:
    install = f"helm install stromboli {stand_in_charts.older(tmp_path)} --namespace volcano-system --create-namespace"
    await shell.succeeds(f"{install} --set custom.admission_enable=false")  # nobody answers reviews here
    await make_work(administrator, "running")
    before = await uids(administrator)
    assert "QUEUE" not in columns(await definition(administrator))
    upgrade, by_hand = commands("Upgrade")
    await shell.succeeds(upgrade)
    assert "QUEUE" in columns(await definition(administrator))
    await shell.succeeds(by_hand)
    assert await uids(administrator) == before
    without = "--reuse-values --set custom.crds_enable=false"
    await shell.succeeds(f"helm upgrade stromboli charts/stromboli --namespace volcano-system {without}")
    assert await uids(administrator) == before


@PATIENTLY
async def test_moving_over_from_volcano_is_an_upgrade_of_its_release(
    shell: Shell, administrator: Client, tmp_path: Path
) -> None:
    install = f"helm install volcano {stand_in_charts.volcanos(tmp_path)} --namespace volcano-system --create-namespace"
    await shell.succeeds(f"{install} --set custom.scheduler_log_level=5")
    await make_work(administrator, "running")
    before = await uids(administrator)
    without = "--namespace volcano-system --set custom.crds_enable=false"
    code, output = await shell.run(f"helm upgrade volcano charts/stromboli {without}")
    assert code != 0
    assert "this upgrade would delete them and every job with them" in output
    keep_values, check_policy, upgrade, go_back = commands("Moving over from Volcano's chart")
    await shell.succeeds(keep_values)
    assert "actions: allocate" in await shell.succeeds(check_policy)
    await shell.succeeds(upgrade)
    assert await uids(administrator) == before
    ours = container(await scheduler(administrator, "volcano"))
    assert ours["command"] == ["stromboli-scheduler"]
    assert "-v=5" in ours["args"]
    assert len(await webhooks(administrator)) == 7
    await shell.succeeds(go_back)
    assert await uids(administrator) == before
    assert container(await scheduler(administrator, "volcano"))["image"] == "volcanosh/vc-scheduler"
    await shell.succeeds(upgrade)
    await shell.succeeds("helm uninstall volcano --namespace volcano-system")
    assert await uids(administrator) == before
    assert await webhooks(administrator) == set()
    await make_work(administrator, "after")


@PATIENTLY
async def test_moving_over_from_volcanos_manifests_keeps_definitions_and_jobs(
    shell: Shell, administrator: Client, tmp_path: Path
) -> None:
    namespace = "kubectl create namespace volcano-system --dry-run=client -o yaml"
    manifests = f"helm template volcano {stand_in_charts.volcanos(tmp_path)} --namespace volcano-system"
    await shell.succeeds(f"{namespace} | kubectl apply -f -; {manifests} | kubectl create -f -")
    await make_work(administrator, "running")
    before = await uids(administrator)
    await shell.type("Moving over from Volcano's manifests")
    assert await uids(administrator) == before
    assert container(await scheduler(administrator, "volcano"))["command"] == ["stromboli-scheduler"]
    assert len(await webhooks(administrator)) == 7


def test_the_chart_is_where_the_guide_says() -> None:
    assert (ROOT / "charts" / "stromboli").resolve() == CHART.resolve()
