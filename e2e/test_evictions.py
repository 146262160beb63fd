"""Who makes room for whom: reclaim between queues, preemption within a queue and within a job.

The chart's default policy evicts nobody, so the scheduler is given another one while these tests run.
"""

from __future__ import annotations

import pytest
import pytest_asyncio

from e2e.cluster import Cluster, eventually, is_running, uids
from e2e.conftest import OpenQueue
from e2e.contention import EVERYTHING, heavy, refused_a_node
from e2e.policies import PolicyFile
from stromboli.api.kinds import JOBS

pytestmark = pytest.mark.simulated_nodes

POLICY = """
actions: "enqueue, allocate, backfill, preempt, reclaim"
tiers:
# One tier: where a tier spares everybody the next one is asked, and that would know of no gangs.
- plugins:
  - name: priority
  - name: gang
    # A job beyond its gang size still wants its share.
    enableJobStarving: false
  - name: conformance
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def evicting(policy_file: PolicyFile) -> None:
    """The scheduler evicts."""
    await policy_file.put(POLICY)


async def test_a_queue_reclaims_its_share_from_one_that_has_taken_more(cluster: Cluster, open_queue: OpenQueue) -> None:
    greedy, modest = await open_queue("greedy"), await open_queue("modest")
    await cluster.create(JOBS, heavy("taker", EVERYTHING, queue=greedy))
    before = await cluster.running("taker", EVERYTHING)
    await cluster.create(JOBS, heavy("claimant", EVERYTHING, queue=modest))
    await cluster.running("claimant", 5)
    after = await cluster.running("taker", 5)
    assert after.items() <= before.items(), "those that stayed have never been touched"
    await refused_a_node(cluster, "claimant")
    assert len(await cluster.running("claimant", 5)) == len(await cluster.running("taker", 5))


async def test_a_gang_reclaims_room_for_all_of_its_pods(cluster: Cluster, open_queue: OpenQueue) -> None:
    greedy, modest = await open_queue("greedy"), await open_queue("modest", weight=3)
    await cluster.create(JOBS, heavy("taker", EVERYTHING, queue=greedy))
    before = await cluster.running("taker", EVERYTHING)
    await cluster.create(JOBS, heavy("gang", 7, min_available=7, queue=modest))
    await cluster.phase_is("gang", "Running")
    await cluster.running("gang", 7)
    after = await cluster.running("taker", 3)
    assert after.items() <= before.items()


async def test_nothing_is_reclaimed_from_a_queue_that_is_not_reclaimable(
    cluster: Cluster, open_queue: OpenQueue
) -> None:
    closed, open_, modest = await open_queue("mine", reclaimable=False), await open_queue("ours"), await open_queue("m")
    for job, queue in (("kept", closed), ("shared", open_)):
        await cluster.create(JOBS, heavy(job, 5, queue=queue))
    kept, shared = await cluster.running("kept", 5), await cluster.running("shared", 5)
    await cluster.create(JOBS, heavy("claimant", 1, queue=modest))
    await cluster.running("claimant", 1)
    assert await cluster.running("kept", 5) == kept
    assert (await cluster.running("shared", 4)).items() <= shared.items()


async def test_nothing_is_reclaimed_that_would_break_a_gang(cluster: Cluster, open_queue: OpenQueue) -> None:
    greedy, modest = await open_queue("greedy"), await open_queue("modest")
    await cluster.create(JOBS, heavy("rigid", 5, min_available=5, queue=greedy))
    await cluster.create(JOBS, heavy("elastic", 5, queue=greedy))
    rigid, elastic = await cluster.running("rigid", 5), await cluster.running("elastic", 5)
    await cluster.create(JOBS, heavy("claimant", 5, min_available=4, queue=modest))
    await cluster.running("claimant", 4)
    assert await cluster.running("rigid", 5) == rigid
    assert (await cluster.running("elastic", 1)).items() <= elastic.items()


async def test_a_job_of_higher_priority_takes_the_place_of_lower_ones_in_its_queue(
    cluster: Cluster, open_queue: OpenQueue, priorities: dict[str, str]
) -> None:
    queue = await open_queue("team")
    await cluster.create(JOBS, heavy("low", 5, queue=queue, priorityClassName=priorities["low"]))
    await cluster.create(JOBS, heavy("peer", 5, queue=queue, priorityClassName=priorities["high"]))
    low, peer = await cluster.running("low", 5), await cluster.running("peer", 5)
    await cluster.create(JOBS, heavy("urgent", 3, min_available=3, queue=queue, priorityClassName=priorities["high"]))
    await cluster.phase_is("urgent", "Running")
    await cluster.running("urgent", 3)
    assert await cluster.running("peer", 5) == peer, "its equal has kept its place"
    assert (await cluster.running("low", 2)).items() <= low.items()


async def test_a_gang_that_would_not_fit_all_the_same_evicts_nobody(
    cluster: Cluster, open_queue: OpenQueue, priorities: dict[str, str]
) -> None:
    queue = await open_queue("team")
    await cluster.create(JOBS, heavy("low", EVERYTHING, queue=queue, priorityClassName=priorities["low"]))
    low = await cluster.running("low", EVERYTHING)
    urgent = heavy("urgent", 6, min_available=6, cpu="5", queue=queue, priorityClassName=priorities["high"])
    await cluster.create(JOBS, urgent)  # five nodes hold five such pods
    await refused_a_node(cluster, "urgent")
    assert await cluster.running("low", EVERYTHING) == low


async def test_a_pod_of_higher_priority_takes_the_place_of_another_of_its_job(
    cluster: Cluster, open_queue: OpenQueue, priorities: dict[str, str]
) -> None:
    job = heavy("job", EVERYTHING, queue=await open_queue("team"))
    (worker,) = job["spec"]["tasks"]
    worker["template"]["spec"]["priorityClassName"] = priorities["low"]
    spec = {**worker["template"]["spec"], "priorityClassName": priorities["high"]}
    job["spec"]["tasks"] += [{**worker, "name": "master", "replicas": 0, "template": {"spec": spec}}]
    await cluster.create(JOBS, job)
    workers = await cluster.running("job", EVERYTHING)
    tasks = (await cluster.job("job"))["spec"]["tasks"]
    await cluster.patch(JOBS, "job", {"spec": {"tasks": [tasks[0], {**tasks[1], "replicas": 1}]}})
    after = uids(
        await eventually(
            lambda: cluster.pods("job"),
            lambda pods: "job-master-0" in uids(filter(is_running, pods)),
            what="a running master",
        )
    )
    assert len(after.items() & workers.items()) == EVERYTHING - 1
