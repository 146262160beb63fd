"""Jobs whose containers really run: output, exit codes, and what policies make of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.cluster import COMPLETE, Cluster, Json, eventually
from e2e.node.kubectl import Kubectl
from e2e.node.roles import share
from e2e.node.workloads import Workloads
from e2e.realnode.surroundings import Surroundings
from stromboli.api.kinds import JOBS


async def test_a_gang_runs_to_its_end(
    cluster: Cluster, kubectl: Kubectl, workloads: Workloads, surroundings: Surroundings
) -> None:
    job = workloads.job("gang", replicas=4, command="echo worker $VC_TASK_INDEX", plugins={"env": []})
    job["spec"]["tasks"][0]["policies"] = [COMPLETE]
    await cluster.create(JOBS, job)

    done = await cluster.phase_is("gang", "Completed")
    assert done["status"]["succeeded"] == 4
    pods = await cluster.pods("gang")
    assert {pod["spec"]["nodeName"] for pod in pods} <= set(surroundings.nodes)
    assert [await kubectl("logs", f"gang-worker-{index}") for index in range(4)] == [
        f"worker {index}\n" for index in range(4)
    ]


async def test_a_gang_that_is_larger_than_the_nodes_together_gets_no_pod(
    cluster: Cluster, workloads: Workloads
) -> None:
    """The nodes' sizes are those of the machine, as the kubelets report them."""
    await cluster.create(JOBS, workloads.job("gang", replicas=100, cpu="100"))
    group = await eventually(
        lambda: cluster.pod_group("gang"), lambda seen: seen.get("status", {}).get("conditions"), what="a verdict"
    )
    (condition,) = group["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "Admitted",
        "False",
        "ClusterOvercommitted",
    )
    assert await cluster.pods("gang") == []


@dataclass(frozen=True)
class Case:
    """A container ends with code 3; what the policy says, and how the job ends."""

    policy: Json
    want_phase: str
    want_retries: int = 0


CASES = {
    "exit code 3 completes the job": Case({"exitCode": 3, "action": "CompleteJob"}, "Completed"),
    "exit code 3 aborts the job": Case({"exitCode": 3, "action": "AbortJob"}, "Aborted"),
    "exit code 3 terminates the job": Case({"exitCode": 3, "action": "TerminateJob"}, "Terminated"),
    "exit code 3 restarts the job until it may no more": Case({"exitCode": 3, "action": "RestartJob"}, "Failed", 2),
    "exit code 4 is none of this job's": Case({"exitCode": 4, "action": "CompleteJob"}, "Failed"),
    "a failure of whatever code terminates the job": Case(
        {"event": "PodFailed", "action": "TerminateJob"}, "Terminated"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_exit_codes_of_containers_are_what_policies_see(
    cluster: Cluster, workloads: Workloads, case: Case
) -> None:
    job = workloads.job("job", replicas=1, command="exit 3", policies=[case.policy], maxRetry=2)
    await cluster.create(JOBS, job)

    ended = await cluster.phase_is("job", case.want_phase)
    assert ended["status"].get("retryCount", 0) == case.want_retries
    codes = [pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in await cluster.pods()]
    assert set(codes) <= {3}


async def test_a_job_that_fails_once_is_restarted_and_completes(
    cluster: Cluster, workloads: Workloads, tmp_path: Path
) -> None:
    """The nodes' containers and this test see the same files, so the second attempt knows of the first."""
    second_attempt_passes = "test -e /notes/tried || { touch /notes/tried; exit 3; }"
    restart = {"exitCode": 3, "action": "RestartJob"}
    job = workloads.job(
        "job", replicas=1, command=second_attempt_passes, policies=[restart], task_policies=[COMPLETE], maxRetry=3
    )
    await cluster.create(JOBS, share(job, tmp_path))

    done = await cluster.phase_is("job", "Completed")
    assert done["status"]["retryCount"] == 1
    assert done["status"]["succeeded"] == 1
