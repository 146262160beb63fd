"""Pods that are evicted, one by one or by draining a node, and jobs that say what is to happen then."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from e2e.cluster import Cluster, eventually, uids
from e2e.node.kubectl import Kubectl
from e2e.node.workloads import Workloads
from e2e.realnode.surroundings import Surroundings
from stromboli.api.kinds import JOBS, PODS

LONG = "sleep 3600"


async def evict(cluster: Cluster, pod: str) -> None:
    """What drains and autoscalers do."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    await cluster.client.create(PODS, eviction, cluster.namespace, name=pod, subresource="eviction")


async def test_an_evicted_pod_restarts_its_gang(cluster: Cluster, workloads: Workloads) -> None:
    policy = {"event": "PodEvicted", "action": "RestartJob"}
    await cluster.create(JOBS, workloads.job("gang", replicas=3, command=LONG, policies=[policy]))
    before = await cluster.running("gang", 3)

    await evict(cluster, "gang-worker-1")

    async def pods() -> dict[str, str]:
        return uids(pod for pod in await cluster.pods("gang") if pod["status"].get("phase") == "Running")

    await eventually(
        pods,
        lambda seen: seen.keys() == before.keys() and not set(seen.values()) & set(before.values()),
        what="new pods",
    )
    running = await cluster.phase_is("gang", "Running")
    assert running["status"]["retryCount"] == 1


async def test_an_evicted_pod_ends_its_job_when_the_job_says_so(cluster: Cluster, workloads: Workloads) -> None:
    policy = {"event": "PodEvicted", "action": "TerminateJob"}
    await cluster.create(JOBS, workloads.job("gang", replicas=2, command=LONG, policies=[policy]))
    await cluster.running("gang", 2)
    await evict(cluster, "gang-worker-0")
    await cluster.phase_is("gang", "Terminated")
    await eventually(lambda: cluster.pods("gang"), lambda seen: not seen, what="no pod left")


@pytest_asyncio.fixture(loop_scope="session")
async def both_nodes(surroundings: Surroundings, kubectl: Kubectl) -> AsyncIterator[tuple[str, str]]:
    """Names of both nodes, which take pods again afterwards."""
    first, second = surroundings.nodes
    yield first, second
    await kubectl("uncordon", first, second)


async def test_a_drained_nodes_gang_goes_on_elsewhere(
    cluster: Cluster, kubectl: Kubectl, workloads: Workloads, both_nodes: tuple[str, str]
) -> None:
    """All pods of the node go through the Eviction API, ours among them when they are there."""
    first, second = both_nodes
    await kubectl("cordon", first)
    policy = {"event": "PodEvicted", "action": "RestartJob"}
    await cluster.create(JOBS, workloads.job("gang", replicas=3, command=LONG, policies=[policy], maxRetry=10))
    await cluster.running("gang", 3)
    assert {pod["spec"]["nodeName"] for pod in await cluster.pods("gang")} == {second}
    await kubectl("uncordon", first)

    await kubectl("drain", second, "--timeout=120s", "--delete-emptydir-data")

    await eventually(
        lambda: cluster.pods("gang"),
        lambda pods: (
            len(pods) == 3
            and all(pod["status"].get("phase") == "Running" and pod["spec"]["nodeName"] == first for pod in pods)
        ),
        what=f"the gang on {first}",
    )
