"""Upgrading and uninstalling with jobs running: they go on, their definitions stay, and nothing blocks the cluster."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
import yaml

from e2e.cluster import COMPLETE, Cluster, eventually, uids
from e2e.node.kubectl import Kubectl
from e2e.node.workloads import Workloads
from e2e.realcluster.rendering import CHART
from e2e.realnode.releasing import Helm
from stromboli.api.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    JOBS,
    MUTATING_WEBHOOKS,
    PODS,
    VALIDATING_WEBHOOKS,
)

UNTIL_TOLD = "until [ -e /tmp/told ]; do sleep 0.2; done"


class Running:
    """A gang of two that runs until it is told to end."""

    def __init__(self, cluster: Cluster, kubectl: Kubectl, uids: dict[str, str]) -> None:
        self._cluster, self._kubectl, self._uids = cluster, kubectl, uids

    async def goes_on(self) -> None:
        """The very same pods run, each container in its first life."""
        assert await self._cluster.running("gang", 2) == self._uids
        for pod in await self._cluster.pods("gang"):
            assert [container["restartCount"] for container in pod["status"]["containerStatuses"]] == [0]

    async def ends(self) -> None:
        """Told to end, it completes, which takes controllers that look after it."""
        for name in self._uids:
            await self._kubectl("exec", name, "--", "touch", "/tmp/told")
        await self._cluster.phase_is("gang", "Completed")


@pytest_asyncio.fixture(loop_scope="session")
async def gang(cluster: Cluster, kubectl: Kubectl, workloads: Workloads) -> Running:
    """The gang, running."""
    await cluster.create(JOBS, workloads.job("gang", command=UNTIL_TOLD, task_policies=[COMPLETE]))
    return Running(cluster, kubectl, await cluster.running("gang", 2))


@pytest_asyncio.fixture(loop_scope="session")
async def restored(helm: Helm) -> AsyncIterator[Helm]:
    """Helm; afterwards the release has the chart's values again."""
    yield helm
    await helm.upgrade()


async def definitions(cluster: Cluster) -> dict[str, str]:
    """UIDs of our CustomResourceDefinitions; a new UID would mean that all objects are gone."""
    found = await cluster.client.list(CUSTOM_RESOURCE_DEFINITIONS)
    return {name: uid for name, uid in uids(found).items() if name.endswith(".volcano.sh")}


async def arguments(cluster: Cluster, helm: Helm, component: str) -> list[str]:
    """Arguments of a component's container."""
    found = await cluster.client.get(DEPLOYMENTS, f"{helm.release.name}-{component}", helm.release.namespace)
    return list(found["spec"]["template"]["spec"]["containers"][0]["args"])


async def test_other_values_change_the_processes_and_no_job(cluster: Cluster, restored: Helm, gang: Running) -> None:
    before = await definitions(cluster)
    await restored.upgrade(values={"custom": {"scheduler_schedule_period": "500ms", "controller_worker_threads": 7}})
    assert "--schedule-period=500ms" in await arguments(cluster, restored, "scheduler")
    assert "--worker-threads=7" in await arguments(cluster, restored, "controllers")
    assert await definitions(cluster) == before
    await gang.goes_on()
    await gang.ends()


async def test_another_version_of_the_chart_takes_the_jobs_over(
    cluster: Cluster, restored: Helm, gang: Running, tmp_path: Path
) -> None:
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": "99.0.0"}))
    before, revision = await definitions(cluster), await restored.revision()

    await restored.upgrade(chart=chart)

    assert await restored.revision() == revision + 1
    assert await definitions(cluster) == before
    await gang.goes_on()
    await gang.ends()


async def webhooks(cluster: Cluster) -> list[str]:
    """Names of our webhook configurations."""
    found = [item for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS) for item in await cluster.client.list(kind)]
    return [item["metadata"]["name"] for item in found if "volcano" in item["metadata"]["name"]]


async def test_uninstalled_it_blocks_nothing_and_installed_again_it_goes_on(
    cluster: Cluster, helm: Helm, kubectl: Kubectl, workloads: Workloads, gang: Running
) -> None:
    before = await definitions(cluster)
    assert await webhooks(cluster)

    await helm.uninstall()
    try:
        assert await webhooks(cluster) == []
        assert await definitions(cluster) == before
        await gang.goes_on()
        await kubectl("run", "other", f"--image={workloads.image}", "--restart=Never", "--", "true")
        await eventually(
            lambda: cluster.client.get(PODS, "other", cluster.namespace),
            lambda pod: pod["status"].get("phase") == "Succeeded",
            what="a pod of somebody else's runs",
        )
        await cluster.create(JOBS, workloads.job("later", task_policies=[COMPLETE]))
    finally:
        await helm.install()

    await gang.goes_on()
    await gang.ends()
    await cluster.phase_is("later", "Completed")
