"""The main job: a gang is queued, admitted, placed and completed."""

from __future__ import annotations

import asyncio

import pytest

from e2e.cluster import COMPLETE, Cluster, eventually, phase, vcjob
from stromboli.api.kinds import JOBS, PODS


async def test_a_gang_runs_to_completion(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("gang", replicas=4, task_policies=[COMPLETE]))
    job = await cluster.phase_is("gang", "Completed")
    assert job["status"]["succeeded"] == 4
    assert job["status"]["minAvailable"] == 4
    pods = await cluster.pods("gang")
    assert sorted(pod["metadata"]["name"] for pod in pods) == [f"gang-worker-{index}" for index in range(4)]
    assert all(pod["spec"]["nodeName"] and pod["spec"]["schedulerName"] == "volcano" for pod in pods)


async def test_a_gang_without_policies_completes_when_all_pods_have(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("plain", replicas=2))
    await cluster.phase_is("plain", "Completed")


async def test_the_pod_group_carries_the_gang(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("grouped", replicas=3, min_available=2, command="sleep 60"))
    group = await eventually(
        lambda: cluster.pod_group("grouped"), lambda seen: seen.get("status", {}).get("phase") == "Running"
    )
    job = await cluster.job("grouped")
    assert group["metadata"]["name"] == f"grouped-{job['metadata']['uid']}"
    assert group["spec"]["minMember"] == 2
    assert group["spec"]["queue"] == "default"
    assert [owner["uid"] for owner in group["metadata"]["ownerReferences"]] == [job["metadata"]["uid"]]


async def test_a_gang_too_big_starts_no_pod_and_says_why_with_numbers(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("too-big", replicas=30, cpu="4"))
    group = await eventually(
        lambda: cluster.pod_group("too-big"),
        lambda seen: any(
            condition["type"] == "Admitted" and condition["status"] == "False"
            for condition in seen.get("status", {}).get("conditions", [])
        ),
    )
    condition = next(c for c in group["status"]["conditions"] if c["type"] == "Admitted")
    assert condition["reason"] == "ClusterOvercommitted"
    assert condition["message"].startswith(
        "The group needs cpu 120; the cluster admits cpu 48 (1.2 times its size), of"
    )
    pods = await cluster.pods("too-big")
    assert not [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]
    assert phase(await cluster.job("too-big")) == "Pending"


@pytest.mark.simulated_nodes
async def test_a_gang_that_is_admitted_but_finds_no_room_says_what_is_lacking(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("tight", replicas=11, cpu="3", command="sleep 1"))
    group = await eventually(
        lambda: cluster.pod_group("tight"),
        # While its pods still come the condition counts those that are there.
        lambda seen: any(
            condition["type"] == "Unschedulable" and "/11 tasks" in condition["message"]
            for condition in seen.get("status", {}).get("conditions", [])
        ),
    )
    message = next(c["message"] for c in group["status"]["conditions"] if c["type"] == "Unschedulable")
    assert message.startswith("1/11 tasks in gang unschedulable: pod group is not ready"), message
    assert "Insufficient cpu" in message
    pods = await cluster.pods("tight")
    assert len(pods) == 11
    assert not [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]


@pytest.mark.simulated_nodes
async def test_two_gangs_that_do_not_fit_together_run_one_after_the_other(cluster: Cluster) -> None:
    for name in ("first", "second"):
        await cluster.create(JOBS, vcjob(name, replicas=6, cpu="4", command="sleep 2", task_policies=[COMPLETE]))
    both = asyncio.gather(*(cluster.phase_is(name, "Completed") for name in ("first", "second")))
    while not both.done():
        running = {
            name: sum(bool(pod["spec"].get("nodeName")) for pod in await cluster.pods(name)
                      if pod["status"].get("phase") in ("Pending", "Running"))
            for name in ("first", "second")
        }  # fmt: skip
        assert sum(running.values()) <= 10, f"5 nodes of 8 cpu hold 10 pods of 4, seen {running}"
        await asyncio.sleep(0.1)
    await both


async def test_a_failed_pod_restarts_the_job_until_retries_are_used_up(cluster: Cluster) -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    await cluster.create(JOBS, vcjob("flaky", replicas=1, command="exit 3", policies=policies, maxRetry=2))
    job = await cluster.phase_is("flaky", "Failed")
    assert job["status"]["retryCount"] == 2
    active = [pod for pod in await cluster.pods("flaky") if pod["status"].get("phase") in ("Pending", "Running")]
    assert not active


async def test_a_failed_pod_aborts_the_job_when_the_policy_says_so(cluster: Cluster) -> None:
    policies = [{"event": "PodFailed", "action": "AbortJob"}]
    await cluster.create(JOBS, vcjob("aborts", replicas=2, command="exit 1", policies=policies))
    await cluster.phase_is("aborts", "Aborted")


async def test_deleting_a_job_takes_its_pods_and_pod_group_along(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("doomed", replicas=3, command="sleep 600"))
    await cluster.phase_is("doomed", "Running")
    await cluster.delete(JOBS, "doomed")
    await cluster.gone(JOBS, "doomed")
    await eventually(cluster.pods, lambda seen: not seen, what="no pods")
    await eventually(lambda: cluster.pod_group("doomed"), lambda seen: not seen, what="no pod group")


async def test_a_deleted_pod_of_a_running_job_is_made_again(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("healing", replicas=2, command="sleep 600"))
    await cluster.phase_is("healing", "Running")
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await cluster.pods("healing")}
    await cluster.delete(PODS, "healing-worker-1", grace_period_seconds=0)
    after = await eventually(
        lambda: cluster.pods("healing"),
        lambda seen: (
            len(seen) == 2
            and all(pod["status"].get("phase") == "Running" for pod in seen)
            and {pod["metadata"]["uid"] for pod in seen} != set(before.values())
        ),
    )
    assert {pod["metadata"]["name"] for pod in after} == set(before)


async def test_a_job_of_the_same_name_is_another_job(cluster: Cluster) -> None:
    policies = [{"event": "PodEvicted", "action": "TerminateJob"}]
    await cluster.create(JOBS, vcjob("again", replicas=2, command="sleep 600", policies=policies))
    await cluster.phase_is("again", "Running")
    await cluster.delete(JOBS, "again")
    await cluster.gone(JOBS, "again")
    await cluster.create(JOBS, vcjob("again", replicas=2, command="sleep 600", policies=policies))
    await cluster.phase_is("again", "Running")
    pods = await eventually(lambda: cluster.pods("again"), lambda seen: len(seen) == 2)
    job = await cluster.job("again")
    assert all(pod["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"] for pod in pods)
