"""A process of the control plane dies in mid-job, as a container and as a pod; the job does not notice."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from e2e.cluster import COMPLETE, Cluster, Json, eventually
from e2e.node.workloads import Workloads
from e2e.realnode.releasing import Helm
from stromboli.api.kinds import DEPLOYMENTS, JOBS, PODS

START_SECONDS = 240.0
"""A container and its process start in seconds where a machine has nothing else to do."""
Death = Callable[[Cluster, str, str], Awaitable[None]]


async def killed(cluster: Cluster, namespace: str, component: str) -> None:
    """SIGKILL to the process in the container, from outside; the kubelet starts the container again."""
    (pid,) = [pid for pid in processes() if f"/stromboli-{component}" in command(pid)]
    os.kill(pid, signal.SIGKILL)


async def deleted(cluster: Cluster, namespace: str, component: str) -> None:
    """The pod is deleted without grace; its Deployment makes another."""
    pods = await cluster.client.list(PODS, namespace)
    (pod,) = [pod["metadata"]["name"] for pod in pods if pod["metadata"]["name"].startswith(f"stromboli-{component}-")]
    await cluster.client.delete(PODS, pod, namespace, grace_period_seconds=0)


def processes() -> list[int]:
    """All processes of the nodes: tests run in the namespace that holds them."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def command(pid: int) -> str:
    """Command line of a process; empty for one that has ended."""
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


@pytest.mark.parametrize("component", ["scheduler", "controllers"])
@pytest.mark.parametrize("death", [killed, deleted])
async def test_a_job_finishes_although_a_process_dies_in_between(
    cluster: Cluster, helm: Helm, workloads: Workloads, death: Death, component: str
) -> None:
    """The second task waits for the first, so pods are yet to be made and to be placed when the process is gone."""
    job = workloads.job("job", replicas=2, min_available=2, command="sleep 4", task_policies=[COMPLETE])
    (first,) = job["spec"]["tasks"]
    first["policies"] = []
    second: Json = {**first, "name": "second", "dependsOn": {"name": ["worker"]}, "policies": [COMPLETE]}
    job["spec"]["tasks"] = [first, second]
    await cluster.create(JOBS, job)
    before = await cluster.running("job", 2)

    await death(cluster, helm.release.namespace, component)

    done = await cluster.phase_is("job", "Completed", within=START_SECONDS)
    assert done["status"]["succeeded"] == 4
    assert done["status"].get("retryCount", 0) == 0
    pods = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await cluster.pods("job")}
    assert len(pods) == 4
    assert before.items() <= pods.items(), "the first task's pods are those from before"
    await eventually(
        lambda: cluster.client.get(DEPLOYMENTS, f"{helm.release.name}-{component}", helm.release.namespace),
        lambda seen: seen["status"].get("availableReplicas") == 1,
        within=START_SECONDS,
        what=f"{component} is available again",
    )
