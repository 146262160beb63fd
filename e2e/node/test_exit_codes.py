"""Exit codes of real containers that restart tasks, end jobs, or come from the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.cluster import COMPLETE, Cluster, Json, eventually
from e2e.node.roles import LONG, PATIENCE, Role, share, team
from e2e.node.workloads import Workloads
from stromboli.api.kinds import JOBS

AS_TOLD = """\
while true; do
  if [ -e /notes/fail ]; then rm /notes/fail; exit 3; fi
  if [ -e /notes/end ]; then exit 0; fi
  sleep 0.2
done
"""
RESTART_TASK = {"exitCode": 3, "action": "RestartTask"}


async def test_a_code_that_restarts_a_task_leaves_the_other_tasks_alone(
    cluster: Cluster, workloads: Workloads, tmp_path: Path
) -> None:
    roles = {"flaky": Role(AS_TOLD, policies=[RESTART_TASK, COMPLETE]), "steady": Role(LONG)}
    await cluster.create(JOBS, share(team(workloads, "job", roles, {}), tmp_path))
    before = await cluster.running("job", 2)

    (tmp_path / "fail").touch()

    await eventually(
        lambda: cluster.job("job"), lambda job: job["status"].get("retryCount") == 1, within=PATIENCE, what="a restart"
    )
    await cluster.phase_is("job", "Running", within=PATIENCE)
    after = await cluster.running("job", 2)
    assert after["job-steady-0"] == before["job-steady-0"]
    assert after["job-flaky-0"] != before["job-flaky-0"]

    (tmp_path / "end").touch()
    done = await cluster.phase_is("job", "Completed", within=PATIENCE)
    assert done["status"]["retryCount"] == 1


async def test_a_task_that_fails_each_time_fails_its_job_when_it_may_start_no_more(
    cluster: Cluster, workloads: Workloads
) -> None:
    roles = {"flaky": Role("exit 3", policies=[RESTART_TASK]), "steady": Role(LONG)}
    await cluster.create(JOBS, team(workloads, "job", roles, {}, maxRetry=3))
    failed = await cluster.phase_is("job", "Failed", within=PATIENCE)
    assert failed["status"]["retryCount"] == 3
    await eventually(
        lambda: cluster.pods("job"),
        lambda pods: all(pod["status"]["phase"] == "Failed" for pod in pods),
        within=PATIENCE,
        what="no pod goes on",
    )


@dataclass(frozen=True)
class Case:
    """How a container ends, what its task and its job say to that, and how the job ends."""

    command: str
    task_policies: list[Json]
    policies: list[Json]
    want_phase: str
    want_code: int = 3
    want_reason: str = "Error"


ABORT = {"exitCode": 3, "action": "AbortJob"}
CASES = {
    "a task's word on a code goes before its job's": Case(
        "exit 3", [{"exitCode": 3, "action": "TerminateJob"}], [ABORT], "Terminated"
    ),
    "a code that its task has no word on is its job's": Case(
        "exit 3", [{"exitCode": 4, "action": "TerminateJob"}], [ABORT], "Aborted"
    ),
    "137 is for a container that needs more memory than it may have": Case(
        "exec tail /dev/zero", [{"exitCode": 137, "action": "TerminateJob"}], [], "Terminated", 137, "OOMKilled"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_tasks_policies_see_the_codes_of_its_containers(
    cluster: Cluster, workloads: Workloads, case: Case
) -> None:
    job = team(workloads, "job", {"one": Role(case.command, policies=case.task_policies)}, {}, policies=case.policies)
    container = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"]["limits"] = {"memory": "32Mi"}
    await cluster.create(JOBS, job)

    await cluster.phase_is("job", case.want_phase, within=PATIENCE)
    (pod,) = await cluster.pods("job")
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (case.want_code, case.want_reason)
