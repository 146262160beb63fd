"""CronJobs: starts, what happens beside a running job, and history.

A yearly schedule whose last start is said to be years ago has exactly one start due, at once, and no other while a test
runs: nothing here waits for a minute to pass.
"""

from __future__ import annotations

import pytest

from e2e.cluster import Cluster, Json, eventually, vcjob
from stromboli.api.kinds import CRON_JOBS, JOBS
from stromboli.kube.errors import ApiError

YEARLY = "0 0 1 1 *"
LONG_AGO = "2023-06-01T00:00:00Z"


def cron_job(name: str, command: str = "sleep 1", schedule: str = YEARLY, **spec: object) -> Json:
    template = {"metadata": {"labels": {"made-by": name}}, "spec": vcjob("x", replicas=1, command=command)["spec"]}
    return {
        "apiVersion": CRON_JOBS.api_version,
        "kind": CRON_JOBS.kind,
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "suspend": True, "jobTemplate": template, **spec},
    }


async def seen(cluster: Cluster, name: str) -> Json:
    return await cluster.client.get(CRON_JOBS, name, cluster.namespace)


async def status(cluster: Cluster, name: str) -> Json:
    found: Json = (await seen(cluster, name)).get("status") or {}
    return found


async def children(cluster: Cluster, name: str) -> list[str]:
    """Names of the CronJob's jobs that are not being deleted."""
    owner = (await seen(cluster, name))["metadata"]["uid"]
    found = await cluster.client.list(JOBS, cluster.namespace)
    return sorted(
        job["metadata"]["name"]
        for job in found
        if any(one["uid"] == owner for one in job["metadata"].get("ownerReferences", []))
        and "deletionTimestamp" not in job["metadata"]
    )


async def with_a_running_job(cluster: Cluster, name: str, policy: str) -> str:
    """A suspended CronJob on whose record there is one running job; answers that job's name."""
    made = await cluster.create(CRON_JOBS, cron_job(name, "sleep 600", concurrencyPolicy=policy))
    job = vcjob(f"{name}-first", replicas=1, command="sleep 600")
    job["metadata"]["ownerReferences"] = [
        {
            "apiVersion": CRON_JOBS.api_version,
            "kind": CRON_JOBS.kind,
            "name": name,
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
    ]
    running = await cluster.create(JOBS, job)
    reference = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "namespace": cluster.namespace,
        "name": running["metadata"]["name"],
        "uid": running["metadata"]["uid"],
    }
    record = {"active": [reference], "lastScheduleTime": LONG_AGO}
    await cluster.patch(CRON_JOBS, name, {"status": record}, subresource="status")
    return str(running["metadata"]["name"])


async def resume(cluster: Cluster, name: str) -> None:
    await cluster.patch(CRON_JOBS, name, {"spec": {"suspend": False}})


async def test_a_missed_start_is_made_up_for_once_and_its_job_completes(cluster: Cluster) -> None:
    await cluster.create(CRON_JOBS, cron_job("once"))
    await cluster.patch(CRON_JOBS, "once", {"status": {"lastScheduleTime": LONG_AGO}}, subresource="status")
    assert await children(cluster, "once") == [], "it is suspended"
    await resume(cluster, "once")
    [name] = await eventually(lambda: children(cluster, "once"), lambda found: len(found) == 1)
    await cluster.phase_is(name, "Completed")
    record = await eventually(
        lambda: status(cluster, "once"), lambda found: found.get("lastSuccessfulTime") and not found.get("active")
    )
    assert record["lastScheduleTime"].endswith("-01-01T00:00:00Z")
    job = await cluster.job(name)
    assert job["metadata"]["labels"]["made-by"] == "once"
    assert job["metadata"]["annotations"]["volcano.sh/cronjob-scheduled-timestamp"] == record["lastScheduleTime"]
    assert await children(cluster, "once") == [name]


async def test_allow_starts_beside_a_running_job(cluster: Cluster) -> None:
    first = await with_a_running_job(cluster, "allowing", "Allow")
    await resume(cluster, "allowing")
    both = await eventually(lambda: children(cluster, "allowing"), lambda found: len(found) == 2)
    assert first in both
    record = await eventually(lambda: status(cluster, "allowing"), lambda found: len(found.get("active", [])) == 2)
    assert sorted(one["name"] for one in record["active"]) == both


async def test_forbid_waits_for_the_running_job_and_then_starts(cluster: Cluster) -> None:
    first = await with_a_running_job(cluster, "forbidding", "Forbid")
    await resume(cluster, "forbidding")
    await eventually(
        lambda: cluster.events("forbidding"),
        lambda found: any(event["reason"] == "ForbidConcurrent" for event in found),
    )
    assert await children(cluster, "forbidding") == [first]
    await cluster.delete(JOBS, first)
    await eventually(lambda: children(cluster, "forbidding"), lambda found: found and found != [first])


async def test_replace_ends_the_running_job(cluster: Cluster) -> None:
    first = await with_a_running_job(cluster, "replacing", "Replace")
    await resume(cluster, "replacing")
    [second] = await eventually(
        lambda: children(cluster, "replacing"), lambda found: len(found) == 1 and found != [first]
    )
    await cluster.gone(JOBS, first)
    record = await eventually(lambda: status(cluster, "replacing"), lambda found: len(found.get("active", [])) == 1)
    assert record["active"][0]["name"] == second


async def test_history_is_kept_within_its_limit(cluster: Cluster) -> None:
    made = await cluster.create(CRON_JOBS, cron_job("keeping", successfulJobsHistoryLimit=1))
    owner = {"apiVersion": CRON_JOBS.api_version, "kind": CRON_JOBS.kind, "name": "keeping", "controller": True}
    for number in range(3):
        job = vcjob(f"old-{number}", replicas=1, command="sleep 0")
        job["metadata"]["ownerReferences"] = [{**owner, "uid": made["metadata"]["uid"]}]
        await cluster.create(JOBS, job)
    await eventually(lambda: children(cluster, "keeping"), lambda found: len(found) == 1)


async def test_a_schedule_or_zone_that_makes_no_sense_is_refused(cluster: Cluster) -> None:
    for spec in ({"schedule": "not a schedule"}, {"timeZone": "Mars/Olympus"}):
        with pytest.raises(ApiError) as refused:
            await cluster.create(CRON_JOBS, cron_job("nonsense", **spec))
        assert "cronjob" in refused.value.message.lower() or "schedule" in refused.value.message.lower()


async def test_deleting_a_cron_job_takes_its_jobs_along(cluster: Cluster) -> None:
    first = await with_a_running_job(cluster, "doomed", "Allow")
    await cluster.delete(CRON_JOBS, "doomed")
    await cluster.gone(JOBS, first)
