"""Room for whole gangs: the actions gangpreempt and gangreclaim, which spare other gangs where they can."""

from __future__ import annotations

import pytest
import pytest_asyncio

from e2e.cluster import Cluster
from e2e.conftest import OpenQueue
from e2e.contention import EVERYTHING, heavy, refused_a_node
from e2e.policies import PolicyFile
from stromboli.api.kinds import JOBS

pytestmark = pytest.mark.simulated_nodes

POLICY = """
actions: "enqueue, allocate, backfill, gangpreempt, gangreclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def evicting(policy_file: PolicyFile) -> None:
    """The scheduler evicts for gangs."""
    await policy_file.put(POLICY)


async def test_a_gang_preempts_what_breaks_no_other_gang(
    cluster: Cluster, open_queue: OpenQueue, priorities: dict[str, str]
) -> None:
    queue, low, high = await open_queue("team"), priorities["low"], priorities["high"]
    await cluster.create(JOBS, heavy("rigid", 5, min_available=5, queue=queue, priorityClassName=low))
    await cluster.create(JOBS, heavy("elastic", 5, queue=queue, priorityClassName=low))
    rigid, elastic = await cluster.running("rigid", 5), await cluster.running("elastic", 5)
    await cluster.create(JOBS, heavy("urgent", 4, min_available=4, queue=queue, priorityClassName=high))
    await cluster.phase_is("urgent", "Running")
    await cluster.running("urgent", 4)
    assert await cluster.running("rigid", 5) == rigid
    assert (await cluster.running("elastic", 1)).items() <= elastic.items()


async def test_a_gang_preempts_nobody_of_its_own_priority(
    cluster: Cluster, open_queue: OpenQueue, priorities: dict[str, str]
) -> None:
    queue, high = await open_queue("team"), priorities["high"]
    await cluster.create(JOBS, heavy("peer", EVERYTHING, queue=queue, priorityClassName=high))
    peer = await cluster.running("peer", EVERYTHING)
    await cluster.create(JOBS, heavy("urgent", 2, min_available=2, queue=queue, priorityClassName=high))
    await refused_a_node(cluster, "urgent")
    assert await cluster.running("peer", EVERYTHING) == peer


async def test_a_gang_reclaims_from_another_queue_what_breaks_no_gang(cluster: Cluster, open_queue: OpenQueue) -> None:
    greedy, modest = await open_queue("greedy"), await open_queue("modest")
    await cluster.create(JOBS, heavy("rigid", 5, min_available=5, queue=greedy))
    await cluster.create(JOBS, heavy("elastic", 5, queue=greedy))
    rigid, elastic = await cluster.running("rigid", 5), await cluster.running("elastic", 5)
    await cluster.create(JOBS, heavy("claimant", 4, min_available=4, queue=modest))
    await cluster.phase_is("claimant", "Running")
    await cluster.running("claimant", 4)
    assert await cluster.running("rigid", 5) == rigid
    assert (await cluster.running("elastic", 1)).items() <= elastic.items()


async def test_a_gang_reclaims_no_more_than_its_queue_deserves(cluster: Cluster, open_queue: OpenQueue) -> None:
    greedy, modest = await open_queue("greedy"), await open_queue("modest")
    await cluster.create(JOBS, heavy("taker", EVERYTHING, queue=greedy))
    before = await cluster.running("taker", EVERYTHING)
    await cluster.create(JOBS, heavy("claimant", 6, min_available=6, queue=modest))
    await refused_a_node(cluster, "claimant")
    assert await cluster.running("taker", EVERYTHING) == before
