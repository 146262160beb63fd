"""Lifecycle policies as a table: what happens, what the policy says, and which pods live after it.

Every job of the table has four workers in two partitions and one server, all of which would run for long. Something
happens to one of them, and then either the job ends, with exactly the finished pods left, or it runs again, with new
pods in place of exactly those that the action is about.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from e2e.cluster import Cluster, Json, eventually, phase, uids, vcjob
from stromboli.api.kinds import JOBS, NODES, PODS

pytestmark = pytest.mark.simulated_nodes

WORKERS = frozenset(f"job-worker-{index}" for index in range(4))
FIRST_PARTITION, SECOND_PARTITION = {"job-worker-0", "job-worker-1"}, {"job-worker-2", "job-worker-3"}
WORKER, OTHER_WORKER, SERVER = "job-worker-1", "job-worker-2", "job-server-0"
ALL = WORKERS | {SERVER}
STUCK = {"simulation.stromboli.dev/fail-image-pull": "true"}

Happening = Callable[[Cluster], Awaitable[None]]


# -- what can happen ---------------------------------------------------------------------------------------------------


async def ends(cluster: Cluster, pod: str, code: int) -> None:
    """The pod's containers end now, with that exit code."""
    notes = {"simulation.stromboli.dev/run-seconds": "0", "simulation.stromboli.dev/exit-code": str(code)}
    await cluster.patch(PODS, pod, {"metadata": {"annotations": notes}})


async def a_worker_fails(cluster: Cluster) -> None:
    await ends(cluster, WORKER, 3)


async def a_worker_is_evicted(cluster: Cluster) -> None:
    await cluster.delete(PODS, OTHER_WORKER, grace_period_seconds=0)


async def the_server_completes(cluster: Cluster) -> None:
    await ends(cluster, SERVER, 0)


async def a_worker_restarts_too_often(cluster: Cluster) -> None:
    """Its kubelet reports as many restarts of the container as the task may have."""
    (pod,) = [pod for pod in await cluster.pods("job") if pod["metadata"]["name"] == WORKER]
    (container,) = pod["status"]["containerStatuses"]
    await cluster.patch(
        PODS, WORKER, {"status": {"containerStatuses": [{**container, "restartCount": 3}]}}, subresource="status"
    )


async def nothing_more(cluster: Cluster) -> None:
    """What matters has been so from the start."""


async def the_gang_breaks(cluster: Cluster) -> None:
    """A member is lost and finds no node any more while the others run: its PodGroup becomes Unknown."""
    await label_a_node(cluster, None)
    await a_worker_is_evicted(cluster)
    await eventually(lambda: cluster.job("job"), lambda seen: seen["status"].get("version"), what="an action taken")
    await label_a_node(cluster, "yes")


async def the_job_is_scaled(cluster: Cluster) -> None:
    worker, server = (await cluster.job("job"))["spec"]["tasks"]
    tasks = [worker, {**server, "replicas": 2, "minAvailable": 2}]
    await cluster.patch(JOBS, "job", {"spec": {"tasks": tasks}})
    await eventually(lambda: cluster.pods("job"), lambda seen: len(seen) == 6, what="a second server")


async def label_a_node(cluster: Cluster, value: str | None) -> None:
    await cluster.patch(NODES, "node-0", {"metadata": {"labels": {cluster.namespace: value}}})


# -- what comes of it --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """The job has ended in a phase; of its pods only those are left that had finished."""

    phase: str
    left: frozenset[str] = frozenset()

    async def seen(self, cluster: Cluster, before: dict[str, str]) -> None:
        job = await cluster.phase_is("job", self.phase)
        left = await eventually(
            lambda: cluster.pods("job"), lambda pods: set(uids(pods)) == self.left, what=f"only {set(self.left)} left"
        )
        assert uids(left).items() <= before.items()
        assert job["status"].get("version") == 1
        assert [job["status"].get(count, 0) for count in ("pending", "running", "terminating")] == [0, 0, 0]
        assert not await cluster.pod_group("job")


@dataclass(frozen=True)
class Again:
    """The job runs again, with new pods in place of exactly ``remade``; ``failed`` pods are left as they are."""

    remade: frozenset[str]
    version: int = 0
    retries: int = 1
    failed: int = 0

    async def seen(self, cluster: Cluster, before: dict[str, str]) -> None:
        async def now() -> tuple[Json, list[Json]]:
            return await cluster.job("job"), await cluster.pods("job")

        def settled(seen: tuple[Json, list[Json]]) -> bool:
            job, pods = seen
            after = uids(pods)
            remade = {name for name in after if after[name] != before.get(name)}
            # The job's status is written after its pods.
            status = job["status"]
            counted = (status.get("failed", 0), status.get("retryCount", 0)) == (self.failed, self.retries)
            return remade >= self.remade and len(after) >= len(before) and phase(job) == "Running" and counted

        job, pods = await eventually(now, settled, what=f"running again with new pods {set(self.remade)}")
        after = uids(pods)
        assert {name for name in after if after[name] != before.get(name)} == self.remade
        assert job["status"].get("version", 0) == self.version
        assert job["status"].get("retryCount", 0) == self.retries


def ended(phase: str, *left: str) -> Ended:
    return Ended(phase, frozenset(left))


def again(*remade: str, **more: int) -> Again:
    return Again(frozenset(remade), **more)


WHOLE_AGAIN = Again(frozenset(ALL), version=1)


# -- the table ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One row."""

    happening: Happening
    want: Ended | Again
    policies: list[Json] = field(default_factory=list)
    of_worker: list[Json] = field(default_factory=list)
    of_server: list[Json] = field(default_factory=list)
    server_notes: Json = field(default_factory=dict)
    bound_to_a_node: bool = False
    starts: str = "Running"


def on(event: str, action: str, **more: str) -> list[Json]:
    return [{"event": event, "action": action, **more}]


def exits(code: int, action: str) -> Json:
    return {"exitCode": code, "action": action}


ENDINGS = {"AbortJob": "Aborted", "TerminateJob": "Terminated", "CompleteJob": "Completed"}
ENDED_BY: dict[str, tuple[str, Happening, tuple[str, ...]]] = {
    "a worker fails": ("PodFailed", a_worker_fails, (WORKER,)),
    "a worker is evicted": ("PodEvicted", a_worker_is_evicted, ()),
    "the server completes": ("TaskCompleted", the_server_completes, (SERVER,)),
    "a worker restarts too often": ("TaskFailed", a_worker_restarts_too_often, ()),
}
CASES: dict[str, Case] = {
    f"{what} and {action} ends the job": Case(happening, ended(phase, *left), on(event, action))
    for what, (event, happening, left) in ENDED_BY.items()
    for action, phase in ENDINGS.items()
} | {
    # PodFailed
    "a worker fails and RestartJob remakes all pods": Case(a_worker_fails, WHOLE_AGAIN, on("PodFailed", "RestartJob")),
    "a worker fails and RestartTask remakes its task": Case(
        a_worker_fails, again(*WORKERS), on("PodFailed", "RestartTask")
    ),
    "a worker fails and RestartPod remakes it alone": Case(
        a_worker_fails, again(WORKER), on("PodFailed", "RestartPod")
    ),
    "a worker fails and RestartPartition remakes its partition": Case(
        a_worker_fails, again(*FIRST_PARTITION), on("PodFailed", "RestartPartition")
    ),
    "a worker fails and nothing is said about it": Case(a_worker_fails, again(retries=0, failed=1)),
    # PodEvicted
    "a worker is evicted and RestartJob remakes all pods": Case(
        a_worker_is_evicted, WHOLE_AGAIN, on("PodEvicted", "RestartJob")
    ),
    "a worker is evicted and RestartTask remakes its task": Case(
        a_worker_is_evicted, again(*WORKERS), on("PodEvicted", "RestartTask")
    ),
    "a worker is evicted and RestartPod remakes it alone": Case(
        a_worker_is_evicted, again(OTHER_WORKER), on("PodEvicted", "RestartPod")
    ),
    "a worker is evicted and RestartPartition remakes its partition": Case(
        a_worker_is_evicted, again(*SECOND_PARTITION), on("PodEvicted", "RestartPartition")
    ),
    "a worker is evicted and nothing is said about it": Case(a_worker_is_evicted, again(OTHER_WORKER, retries=0)),
    # TaskCompleted
    "the server completes and RestartJob remakes all pods": Case(
        the_server_completes, WHOLE_AGAIN, on("TaskCompleted", "RestartJob")
    ),
    "the server completes and RestartTask remakes it": Case(
        the_server_completes, again(SERVER), on("TaskCompleted", "RestartTask")
    ),
    # TaskFailed
    "a worker restarts too often and RestartJob remakes all pods": Case(
        a_worker_restarts_too_often, WHOLE_AGAIN, on("TaskFailed", "RestartJob")
    ),
    "a worker restarts too often and RestartTask remakes its task": Case(
        a_worker_restarts_too_often, again(*WORKERS), on("TaskFailed", "RestartTask")
    ),
    "a worker restarts too often and RestartPod remakes it alone": Case(
        a_worker_restarts_too_often, again(WORKER), on("TaskFailed", "RestartPod")
    ),
    # PodPending, which needs a timeout
    **{
        f"the server is pending for too long and {action} ends the job": Case(
            nothing_more,
            ended(phase),
            on("PodPending", action, timeout="1s"),
            server_notes=STUCK,
            starts="Pending",
        )
        for action, phase in ENDINGS.items()
    },
    "the server is pending for too long and its task's policy ends the job": Case(
        nothing_more,
        ended("Aborted"),
        of_server=on("PodPending", "AbortJob", timeout="1s"),
        server_notes=STUCK,
        starts="Pending",
    ),
    # Unknown
    "the gang breaks and AbortJob ends the job": Case(
        the_gang_breaks, ended("Aborted"), on("Unknown", "AbortJob"), bound_to_a_node=True
    ),
    "the gang breaks and TerminateJob ends the job": Case(
        the_gang_breaks, ended("Terminated"), on("Unknown", "TerminateJob"), bound_to_a_node=True
    ),
    "the gang breaks and RestartJob remakes all pods": Case(
        the_gang_breaks, WHOLE_AGAIN, on("Unknown", "RestartJob"), bound_to_a_node=True
    ),
    # any event
    "any event is a failed pod": Case(a_worker_fails, WHOLE_AGAIN, on("*", "RestartJob")),
    "any event is an eviction": Case(a_worker_is_evicted, ended("Aborted"), on("*", "AbortJob")),
    "any event is a completed task": Case(the_server_completes, ended("Completed", SERVER), on("*", "CompleteJob")),
    "any event is a failed task": Case(a_worker_restarts_too_often, ended("Terminated"), on("*", "TerminateJob")),
    "any event of a task": Case(a_worker_fails, again(*WORKERS), of_worker=on("*", "RestartTask")),
    "one of several events": Case(
        a_worker_is_evicted,
        ended("Terminated"),
        [{"events": ["PodFailed", "PodEvicted"], "action": "TerminateJob"}],
    ),
    # exit codes
    "an exit code restarts the job": Case(a_worker_fails, WHOLE_AGAIN, [exits(3, "RestartJob")]),
    "an exit code aborts the job": Case(a_worker_fails, ended("Aborted", WORKER), [exits(3, "AbortJob")]),
    "an exit code of a task restarts the task": Case(
        a_worker_fails, again(*WORKERS), [exits(3, "AbortJob")], of_worker=[exits(3, "RestartTask")]
    ),
    "the exit code of another policy": Case(
        a_worker_fails, again(WORKER), [exits(4, "TerminateJob"), exits(3, "RestartPod")]
    ),
    "an exit code that no policy knows": Case(a_worker_fails, again(retries=0, failed=1), [exits(4, "TerminateJob")]),
    # levels
    "the task's policy goes before the job's": Case(
        a_worker_fails, again(WORKER), on("PodFailed", "AbortJob"), of_worker=on("PodFailed", "RestartPod")
    ),
    "another task's policy is none of the pod's": Case(
        a_worker_fails,
        ended("Aborted", WORKER),
        on("PodFailed", "AbortJob"),
        of_server=on("PodFailed", "RestartPod"),
    ),
    "the job's policy fills in for events that the task's do not name": Case(
        a_worker_is_evicted,
        again(OTHER_WORKER),
        on("PodEvicted", "RestartPod"),
        of_worker=on("PodFailed", "TerminateJob"),
    ),
    "a task that completes ends the job by its own policy": Case(
        the_server_completes, ended("Completed", SERVER), of_server=on("TaskCompleted", "CompleteJob")
    ),
    "a task that fails ends the job by its own policy": Case(
        a_worker_restarts_too_often, ended("Terminated"), of_worker=on("TaskFailed", "TerminateJob")
    ),
    "the eviction of a worker is no completion": Case(
        a_worker_is_evicted, again(OTHER_WORKER, retries=0), on("TaskCompleted", "CompleteJob")
    ),
    # what asks for nothing
    "JobUpdated is accepted and never happens": Case(
        the_job_is_scaled, again("job-server-1", retries=0), on("JobUpdated", "AbortJob")
    ),
    "ResumeJob is nothing to a job that runs": Case(
        a_worker_is_evicted, again(OTHER_WORKER, retries=0), on("PodEvicted", "ResumeJob")
    ),
    "a pod that is pending for a moment is no reason": Case(
        a_worker_is_evicted, again(OTHER_WORKER, retries=0), on("PodPending", "AbortJob")
    ),
}


def job_of(case: Case, namespace: str) -> Json:
    """The job of a row: four workers in two partitions, and a server."""
    job = vcjob("job", replicas=4, min_available=5, command="sleep 600", policies=case.policies)
    (worker,) = job["spec"]["tasks"]
    server = {**worker, "name": "server", "replicas": 1, "policies": case.of_server}
    server["template"] = {**worker["template"], "metadata": {"annotations": case.server_notes}}
    worker |= {"policies": case.of_worker, "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}}
    job["spec"]["tasks"] = [worker, server]
    if case.bound_to_a_node:
        for task in job["spec"]["tasks"]:
            task["template"]["spec"] = {**task["template"]["spec"], "nodeSelector": {namespace: "yes"}}
    return job


@pytest.mark.parametrize("name", CASES)
async def test_what_happens_leads_to_what_the_policy_says(cluster: Cluster, name: str) -> None:
    case = CASES[name]
    if case.bound_to_a_node:
        await label_a_node(cluster, "yes")
    await cluster.create(JOBS, job_of(case, cluster.namespace))
    before = await cluster.running("job", 5 if case.starts == "Running" else 4)
    if case.starts == "Running":
        await cluster.phase_is("job", case.starts)
    await case.happening(cluster)
    await case.want.seen(cluster, before)
    if case.bound_to_a_node:
        await label_a_node(cluster, None)
