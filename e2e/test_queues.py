"""Queues: the two that always exist, and those that users make."""

from __future__ import annotations

import pytest

from e2e.cluster import COMPLETE, Cluster, Json, eventually, phase, queue, vcjob
from e2e.conftest import OpenQueue
from e2e.contention import EVERYTHING, heavy, refused_a_node
from stromboli.api.kinds import JOBS, QUEUES
from stromboli.kube.errors import ApiError


@pytest.mark.parametrize("name", ["root", "default"])
async def test_root_and_default_exist_and_are_open(cluster: Cluster, name: str) -> None:
    await cluster.queue_is(name, "Open")


async def test_a_new_queue_opens_under_root_and_takes_jobs(cluster: Cluster) -> None:
    name = f"{cluster.namespace}-team"
    await cluster.open_queue(name)
    assert (await cluster.queue(name))["spec"]["parent"] == "root"
    await cluster.create(JOBS, vcjob("in-team", queue=name))
    await cluster.phase_is("in-team", "Completed")
    await cluster.delete(JOBS, "in-team")
    await cluster.delete(QUEUES, name)


async def test_what_a_job_held_of_its_queue_is_released_when_it_is_gone(cluster: Cluster) -> None:
    name = f"{cluster.namespace}-held"
    await cluster.open_queue(name)
    await cluster.create(JOBS, vcjob("holder", queue=name, replicas=2, cpu="100m", command="sleep 600"))
    await eventually(lambda: cluster.queue(name), lambda q: allocated(q).get("pods") == "2", what="two pods held")
    await cluster.delete(JOBS, "holder")
    released = await eventually(lambda: cluster.queue(name), lambda q: allocated(q).get("pods", "0") == "0")
    assert allocated(released).get("cpu") == "0"
    await cluster.delete(QUEUES, name)


def allocated(seen: Json) -> Json:
    """What the queue holds, by its status."""
    held: Json = seen.get("status", {}).get("allocated", {})
    return held


async def test_a_queue_that_deserves_more_than_it_may_have_is_refused_with_field_and_reason(cluster: Cluster) -> None:
    with pytest.raises(ApiError) as refused:
        await cluster.create(QUEUES, queue("impossible", capability={"cpu": "8"}, deserved={"cpu": "16"}))
    assert 'admission webhook "validatequeue.volcano.sh" denied the request' in refused.value.message
    assert "deserved" in refused.value.message


async def test_the_capability_of_a_queue_holds_its_jobs_back(cluster: Cluster) -> None:
    name = f"{cluster.namespace}-small"
    await cluster.open_queue(name, capability={"cpu": "1"})
    await cluster.create(JOBS, vcjob("fits", queue=name, replicas=2, cpu="500m", command="sleep 600"))
    await cluster.phase_is("fits", "Running")
    await cluster.create(JOBS, vcjob("waits", queue=name, replicas=1, cpu="500m", command="sleep 1"))
    await eventually(lambda: cluster.pod_group("waits"), lambda seen: seen.get("status", {}).get("phase") == "Pending")
    assert phase(await cluster.job("waits")) in ("", "Pending")
    await cluster.delete(JOBS, "fits")
    await cluster.phase_is("waits", "Completed")
    await cluster.delete(JOBS, "waits")
    await cluster.delete(QUEUES, name)


async def test_queues_share_a_cluster_that_becomes_free_by_their_weights(
    cluster: Cluster, open_queue: OpenQueue
) -> None:
    await cluster.create(JOBS, heavy("before", EVERYTHING))
    await cluster.running("before", EVERYTHING)
    for name, weight in (("light", 1), ("heavy", 4)):
        await cluster.create(JOBS, heavy(name, EVERYTHING, queue=await open_queue(name, weight=weight)))
        await refused_a_node(cluster, name)
    await cluster.delete(JOBS, "before")
    await cluster.running("light", 2)
    await cluster.running("heavy", 8)


async def test_a_closed_queue_lets_its_jobs_end_and_takes_no_new_ones(cluster: Cluster, open_queue: OpenQueue) -> None:
    name = await open_queue("closing")
    await cluster.create(JOBS, vcjob("inside", queue=name, command="sleep 600", task_policies=[COMPLETE]))
    await cluster.phase_is("inside", "Running")
    await cluster.command("CloseQueue", QUEUES, name)
    await cluster.queue_is(name, "Closing")
    refused = await eventually(lambda: refusal(cluster, name), bool, what="new jobs refused")
    assert "`Closing`" in refused and name in refused
    await cluster.command("CompleteJob", JOBS, "inside")
    await cluster.phase_is("inside", "Completed")
    await cluster.queue_is(name, "Closed")
    assert "`Closed`" in await eventually(lambda: refusal(cluster, name), lambda seen: "`Closed`" in seen)
    await cluster.command("OpenQueue", QUEUES, name)
    await cluster.queue_is(name, "Open")
    await eventually(lambda: refusal(cluster, name), lambda seen: not seen, what="new jobs accepted")
    await cluster.create(JOBS, vcjob("after", queue=name))
    await cluster.phase_is("after", "Completed")


async def refusal(cluster: Cluster, name: str) -> str:
    """What a new job for the queue is told; nothing when it would be accepted."""
    try:
        await cluster.client.create(JOBS, vcjob("probe", queue=name), cluster.namespace, dry_run=True)
    except ApiError as error:
        return error.message
    return ""


async def test_a_job_for_a_queue_that_does_not_exist_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ApiError) as refused:
        await cluster.create(JOBS, vcjob("lost", queue="nowhere"))
    assert "nowhere" in refused.value.message
