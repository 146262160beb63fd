"""Jobs that cannot be carried out and came past admission: each says why and what to do, and disturbs no other.

Admission refuses almost all of them; but a cluster may have an older webhook, one that is down and ignored, or
namespaces that are exempt from it, as the one in which these tests work.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from e2e.cluster import COMPLETE, Cluster, Json, eventually, phase, queue, vcjob
from e2e.unjudged import exempt
from stromboli.api.kinds import JOBS, PERSISTENT_VOLUME_CLAIMS, QUEUES, RESOURCE_QUOTAS

LONG_NAME = "a-job-whose-name-is-longer-than-any-label-of-its-pods-can-ever-be"
Help = Callable[[Cluster], Awaitable[None]]


@pytest_asyncio.fixture(loop_scope="session")
async def unjudged(cluster: Cluster) -> AsyncIterator[Cluster]:
    """The test's cluster, whose namespace our webhooks leave alone."""
    async with exempt(cluster):
        yield cluster


# -- what helps --------------------------------------------------------------------------------------------------------


async def the_claim_is_made(cluster: Cluster) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": "data", "namespace": cluster.namespace}
    wire = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    await cluster.create(PERSISTENT_VOLUME_CLAIMS, wire)


async def the_queue_is_made(cluster: Cluster) -> None:
    await cluster.create(QUEUES, queue(own_queue(cluster)))


async def the_quota_is_raised(cluster: Cluster) -> None:
    await cluster.patch(RESOURCE_QUOTAS, "small", {"spec": {"hard": {"requests.cpu": "8"}}})


def own_queue(cluster: Cluster) -> str:
    return f"{cluster.namespace[-50:].strip('-')}-late"


# -- the table ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A job that cannot be carried out, and what is said about it."""

    broken: Callable[[Cluster], Json]
    reason: str
    says: str
    event: str = ""
    """Reason of the event, where it is another."""
    helps: Help | None = None
    ends: bool = False
    """Whether it ends at once, since nothing can help."""
    name: str = "broken"
    around: list[Json] = field(default_factory=list)


def of(change: Callable[[Json], None], **spec: object) -> Callable[[Cluster], Json]:
    """A job with something changed in the wire form of its spec."""

    def make(_cluster: Cluster) -> Json:
        job = vcjob("broken", replicas=2, command="sleep 1", task_policies=[COMPLETE], **spec)  # type: ignore[arg-type]
        change(job["spec"])
        return job

    return make


def with_spec(**spec: object) -> Callable[[Cluster], Json]:
    return of(lambda _spec: None, **spec)


def of_a_late_queue(cluster: Cluster) -> Json:
    return vcjob("broken", replicas=2, command="sleep 1", queue=own_queue(cluster))


def of_a_long_name(_cluster: Cluster) -> Json:
    return vcjob(LONG_NAME, replicas=1)


def _pod_spec(spec: Json) -> Json:
    found: Json = spec["tasks"][0]["template"]["spec"]
    return found


CLAIMED = [{"mountPath": "/data", "volumeClaimName": "data"}]
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
CASES = {
    "a queue that is not there": Case(
        of_a_late_queue, "QueueNotFound", "not found: create it", helps=the_queue_is_made
    ),
    "a claim that is not there": Case(
        with_spec(volumes=CLAIMED), "PVCError", "pvc data is not found", helps=the_claim_is_made
    ),
    "more than the quota of the namespace": Case(
        of(lambda spec: None),
        "PodCreationFailed",
        "exceeded quota: small",
        event="FailedCreate",
        helps=the_quota_is_raised,
        around=[{**QUOTA, "spec": {"hard": {"requests.cpu": "150m"}}}],
    ),
    "a plugin that nobody has": Case(with_spec(plugins={"nfs": []}), "PluginError", "failed to get plugin nfs"),
    "a plugin without the task it is about": Case(
        with_spec(plugins={"ray": []}), "PluginError", "doesn't have head task head"
    ),
    "a pod template without containers": Case(
        of(lambda spec: _pod_spec(spec).update(containers=[])),
        "PodCreationFailed",
        "spec.containers: Required value",
        event="FailedCreate",
    ),
    "a pod template with an impossible restart policy": Case(
        of(lambda spec: _pod_spec(spec).update(restartPolicy="Sometimes")),
        "PodCreationFailed",
        'Unsupported value: "Sometimes"',
        event="FailedCreate",
    ),
    "a delay that is none": Case(
        with_spec(policies=[{"event": "PodFailed", "action": "AbortJob", "timeout": "soon"}]),
        "InvalidJob",
        "spec.policies[0].timeout",
    ),
    "a name that is too long for what is derived from it": Case(
        of_a_long_name, "PodCreationFailed", "must be no more than 63", event="FailedCreate", name=LONG_NAME
    ),
    "a name that is too long for its service": Case(
        lambda _cluster: vcjob(LONG_NAME, replicas=1, plugins={"svc": []}),
        "PluginError",
        "must be no more than 63",
        ends=True,
        name=LONG_NAME,
    ),
}


async def warnings(cluster: Cluster, job: str, reason: str) -> list[str]:
    events = await cluster.events(job)
    return [event["message"] for event in events if (event["type"], event["reason"]) == ("Warning", reason)]


@pytest.mark.parametrize("name", CASES)
async def test_an_unusable_job_says_why_and_disturbs_no_other(unjudged: Cluster, name: str) -> None:
    cluster, case = unjudged, CASES[name]
    for wire in case.around:
        await cluster.create(RESOURCE_QUOTAS, wire)
        await eventually(
            lambda: cluster.client.get(RESOURCE_QUOTAS, "small", cluster.namespace), lambda q: q.get("status")
        )
    await cluster.create(JOBS, case.broken(cluster))
    state = (
        await eventually(
            lambda: cluster.job(case.name),
            lambda job: job["status"].get("state", {}).get("reason") if "status" in job else None,
            what="a reason in the job's status",
        )
    )["status"]["state"]
    await eventually(
        lambda: warnings(cluster, case.name, case.event or case.reason),
        lambda told: any(case.says in message for message in told),
        what=f"a warning of {case.says!r} beside {state}",
    )
    state = (await cluster.job(case.name))["status"]["state"]
    if case.ends:
        await cluster.phase_is(case.name, "Terminated", "Failed")
    else:
        assert (state["reason"], state.get("phase", "")) in [(case.reason, ""), (case.reason, "Pending")]
    assert case.says in state["message"]
    await cluster.create(JOBS, vcjob("other", replicas=1, cpu="10m", command="sleep 0", task_policies=[COMPLETE]))
    await cluster.phase_is("other", "Completed")
    if case.helps is not None:
        await case.helps(cluster)
        await eventually(lambda: cluster.pods(case.name), lambda pods: len(pods) == 2, what="the job's pods")
        await eventually(
            lambda: cluster.job(case.name),
            lambda job: job["status"]["state"].get("reason") != case.reason,
            what="a job that waits for nothing any more",
        )
    elif not case.ends:
        assert phase(await cluster.job(case.name)) in ("", "Pending")
