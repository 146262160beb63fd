"""How many pods a job has, needs and lets start: scaling, minSuccess, dependsOn, and how it ends."""

from __future__ import annotations

import asyncio

import pytest

from e2e.cluster import Cluster, Json, eventually, uids, vcjob
from stromboli.api.kinds import JOBS, PODS

STUCK = "simulation.stromboli.dev/fail-image-pull"


async def scale(cluster: Cluster, job: str, replicas: int) -> None:
    """Give the job's only task so many replicas, all of them needed."""
    (task,) = (await cluster.job(job))["spec"]["tasks"]
    tasks = [{**task, "replicas": replicas, "minAvailable": replicas}]
    await cluster.patch(JOBS, job, {"spec": {"minAvailable": replicas, "tasks": tasks}})


async def test_scaling_keeps_the_pods_that_stay_and_fires_no_policy(cluster: Cluster) -> None:
    policies = [{"event": "PodEvicted", "action": "TerminateJob"}]
    await cluster.create(JOBS, vcjob("sized", replicas=2, command="sleep 600", policies=policies))
    two = await cluster.running("sized", 2)
    await scale(cluster, "sized", 4)
    four = await cluster.running("sized", 4)
    assert two.items() < four.items()
    await scale(cluster, "sized", 1)
    one = await cluster.running("sized", 1)
    assert one == {"sized-worker-0": two["sized-worker-0"]}
    job = await cluster.phase_is("sized", "Running")
    assert job["status"].get("version", 0) == 0
    assert (await cluster.pod_group("sized"))["spec"]["minMember"] == 1


async def test_a_job_scaled_to_nothing_waits_for_its_next_pods(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("sized", replicas=2, command="sleep 600"))
    before = await cluster.running("sized", 2)
    await cluster.phase_is("sized", "Running")
    await scale(cluster, "sized", 0)
    await eventually(lambda: cluster.pods("sized"), lambda pods: not pods, what="no pods")
    await cluster.phase_is("sized", "Running")
    await scale(cluster, "sized", 2)
    after = await cluster.running("sized", 2)
    assert not after.items() & before.items()


async def test_enough_successes_complete_a_job_whose_other_pods_would_go_on(cluster: Cluster) -> None:
    job = vcjob("enough", replicas=3, min_available=1, command="sleep 0", minSuccess=2)
    (short,) = job["spec"]["tasks"]
    endless = vcjob("x", replicas=2, command="sleep 600")["spec"]["tasks"][0]
    job["spec"]["tasks"] = [short, {**endless, "name": "endless"}]
    await cluster.create(JOBS, job)
    done = await cluster.phase_is("enough", "Completed")
    assert done["status"]["succeeded"] >= 2
    await eventually(
        lambda: cluster.pods("enough"),
        lambda pods: {pod["status"]["phase"] for pod in pods} == {"Succeeded"},
        what="no pod that goes on",
    )


async def test_too_few_successes_fail_a_job(cluster: Cluster) -> None:
    job = vcjob("too-few", replicas=1, min_available=1, command="sleep 0", minSuccess=2)
    (good,) = job["spec"]["tasks"]
    bad = vcjob("x", replicas=2, command="exit 1")["spec"]["tasks"][0]
    job["spec"]["tasks"] = [good, {**bad, "name": "bad"}]
    await cluster.create(JOBS, job)
    failed = await cluster.phase_is("too-few", "Failed")
    assert failed["status"]["state"]["reason"] == "TooFewSucceeded"
    assert failed["status"]["state"]["message"] == "1 pods succeeded, 2 failed"


async def test_a_job_fails_when_a_task_falls_short_of_its_minimum(cluster: Cluster) -> None:
    job = vcjob("short", replicas=1, min_available=2, command="sleep 0")
    (good,) = job["spec"]["tasks"]
    bad = vcjob("x", replicas=1, command="exit 1")["spec"]["tasks"][0]
    job["spec"]["tasks"] = [good, {**bad, "name": "bad"}]
    await cluster.create(JOBS, job)
    await cluster.phase_is("short", "Failed")


def staged(iteration: str) -> Json:
    """Tasks ``ready`` and ``stuck``, which has no image for now, and ``last`` that depends on both."""
    job = vcjob("staged", replicas=1, min_available=1, command="sleep 600")
    (ready,) = job["spec"]["tasks"]
    ready["name"], template = "ready", ready["template"]
    stuck = {**ready, "name": "stuck", "template": {**template, "metadata": {"annotations": {STUCK: "true"}}}}
    last = {**ready, "name": "last", "dependsOn": {"name": ["ready", "stuck"], "iteration": iteration}}
    job["spec"]["tasks"] = [ready, stuck, last]
    return job


@pytest.mark.simulated_nodes
async def test_a_task_that_depends_on_any_other_starts_with_the_first_that_is_ready(cluster: Cluster) -> None:
    await cluster.create(JOBS, staged("any"))
    await cluster.running("staged", 2)
    phases = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in await cluster.pods("staged")}
    assert phases == {"staged-ready-0": "Running", "staged-stuck-0": "Pending", "staged-last-0": "Running"}


@pytest.mark.simulated_nodes
async def test_a_task_that_depends_on_all_others_waits_for_the_last_of_them(cluster: Cluster) -> None:
    await cluster.create(JOBS, staged("all"))
    assert set(await cluster.running("staged", 1)) == {"staged-ready-0"}
    await cluster.phase_is("staged", "Running")
    assert set(uids(await cluster.pods("staged"))) == {"staged-ready-0", "staged-stuck-0"}
    await cluster.patch(PODS, "staged-stuck-0", {"metadata": {"annotations": {STUCK: None}}})
    assert set(await cluster.running("staged", 3)) == {"staged-ready-0", "staged-stuck-0", "staged-last-0"}


async def test_a_task_may_start_after_one_that_has_succeeded(cluster: Cluster) -> None:
    job = vcjob("chain", replicas=1, min_available=1, command="sleep 0")
    (first,) = job["spec"]["tasks"]
    job["spec"]["tasks"] = [
        {**first, "name": "first"},
        {**first, "name": "second", "dependsOn": {"name": ["first"]}},
    ]
    await cluster.create(JOBS, job)
    done = await cluster.phase_is("chain", "Completed")
    assert done["status"]["succeeded"] == 2


async def test_finished_jobs_go_when_their_time_to_live_has_passed(cluster: Cluster) -> None:
    ending: dict[str, Json] = {
        "Completed": {"command": "sleep 0"},
        "Failed": {"command": "exit 1"},
        "Terminated": {"command": "exit 1", "policies": [{"event": "PodFailed", "action": "TerminateJob"}]},
        "Aborted": {"command": "exit 1", "policies": [{"event": "PodFailed", "action": "AbortJob"}]},
    }
    for phase, how in ending.items():
        await cluster.create(JOBS, vcjob(phase.lower(), replicas=1, ttlSecondsAfterFinished=3, **how))
    await asyncio.gather(*(cluster.phase_is(phase.lower(), phase) for phase in ending))
    await asyncio.gather(*(cluster.gone(JOBS, phase.lower()) for phase in ending))
    await eventually(cluster.pods, lambda pods: not pods, what="no pods")
