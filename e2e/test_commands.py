"""Commands to jobs: suspending and resuming, ending and restarting by hand, and what becomes of delayed actions."""

from __future__ import annotations

import pytest

from e2e.cluster import Cluster, Json, eventually, phase, uids, vcjob
from stromboli.api.kinds import COMMANDS, JOBS, PODS


async def test_a_suspended_job_gives_its_room_back_and_runs_again_when_resumed(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("paused", replicas=3, command="sleep 600", plugins={"svc": [], "env": []}))
    before = await cluster.running("paused", 3)
    await cluster.command("AbortJob", JOBS, "paused")
    await cluster.phase_is("paused", "Aborted")
    await eventually(lambda: cluster.pods("paused"), lambda pods: not pods, what="no pods")
    assert not await cluster.pod_group("paused")
    await cluster.command("ResumeJob", JOBS, "paused")
    await cluster.phase_is("paused", "Running")
    after = await cluster.running("paused", 3)
    assert after.keys() == before.keys()
    assert not after.items() & before.items()
    assert (await cluster.job("paused"))["status"].get("retryCount", 0) == 0, "to resume is not to retry"


async def test_a_job_can_be_suspended_before_it_has_found_room(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("waiting", replicas=30, cpu="4"))
    await cluster.phase_is("waiting", "Pending")
    await cluster.command("AbortJob", JOBS, "waiting")
    await cluster.phase_is("waiting", "Aborted")
    await cluster.command("ResumeJob", JOBS, "waiting")
    await cluster.phase_is("waiting", "Pending")
    await eventually(lambda: cluster.pod_group("waiting"), bool, what="a new pod group")


@pytest.mark.parametrize(
    ("action", "want"), [("AbortJob", "Aborted"), ("TerminateJob", "Terminated"), ("CompleteJob", "Completed")]
)
async def test_a_job_is_ended_by_hand(cluster: Cluster, action: str, want: str) -> None:
    await cluster.create(JOBS, vcjob("ended", replicas=2, command="sleep 600"))
    await cluster.running("ended", 2)
    await cluster.phase_is("ended", "Running")
    await cluster.command(action, JOBS, "ended")
    await cluster.phase_is("ended", want)
    await eventually(lambda: cluster.pods("ended"), lambda pods: not pods, what="no pods")
    told = await cluster.events("ended")
    assert f"Start to execute command {action}, and clean it up" in "\n".join(event["message"] for event in told)
    assert not await cluster.client.list(COMMANDS, cluster.namespace), "it is carried out once"


async def test_a_terminated_job_is_not_resumed(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("ended", replicas=1, command="sleep 600"))
    await cluster.phase_is("ended", "Running")
    await cluster.command("TerminateJob", JOBS, "ended")
    await cluster.phase_is("ended", "Terminated")
    await cluster.command("ResumeJob", JOBS, "ended")
    await eventually(
        lambda: cluster.events("ended"),
        lambda seen: any("execute command ResumeJob" in event["message"] for event in seen),
        what="the command carried out",
    )
    # Commands are carried out in the order in which they come: when this one is done, so is the one before.
    await cluster.create(JOBS, vcjob("next", replicas=1, command="sleep 600"))
    await cluster.phase_is("next", "Running")
    await cluster.command("AbortJob", JOBS, "next")
    await cluster.phase_is("next", "Aborted")
    assert phase(await cluster.job("ended")) == "Terminated"
    assert not await cluster.pods("ended")


async def test_a_job_is_restarted_by_hand(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("anew", replicas=2, command="sleep 600"))
    before = await cluster.running("anew", 2)
    await cluster.phase_is("anew", "Running")
    await cluster.command("RestartJob", JOBS, "anew")
    await eventually(
        lambda: cluster.pods("anew"),
        lambda pods: len(pods) == 2 and not uids(pods).items() & before.items(),
        what="two new pods",
    )
    job = await cluster.phase_is("anew", "Running")
    assert (job["status"]["retryCount"], job["status"]["version"]) == (1, 1)


async def test_a_command_for_an_earlier_job_of_the_name_is_dropped(cluster: Cluster) -> None:
    await cluster.create(JOBS, vcjob("same", replicas=1, command="sleep 600"))
    await cluster.running("same", 1)
    target = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": "same", "uid": "of-an-earlier-one"}
    late = {"apiVersion": COMMANDS.api_version, "kind": COMMANDS.kind, "action": "TerminateJob", "target": target}
    await cluster.create(COMMANDS, {**late, "metadata": {"name": "late"}})
    await cluster.gone(COMMANDS, "late")
    await cluster.command("AbortJob", JOBS, "same")
    await cluster.phase_is("same", "Aborted", "Terminated")
    assert phase(await cluster.job("same")) == "Aborted"


async def executions(cluster: Cluster, job: str) -> list[str]:
    """What the job's events say about actions."""
    return [event["message"] for event in await cluster.events(job) if event["reason"] == "ExecuteAction"]


async def test_a_delayed_action_is_announced_and_carried_out_when_its_time_has_come(cluster: Cluster) -> None:
    policies = [{"event": "PodFailed", "action": "TerminateJob", "timeout": "1s"}]
    await cluster.create(JOBS, vcjob("later", replicas=1, command="exit 1", policies=policies))
    # Its only pod has failed at once: without a delay the job would not wait for it.
    await eventually(
        lambda: executions(cluster, "later"), lambda seen: "Execute action TerminateJob after 1s" in seen, what="told"
    )
    await cluster.phase_is("later", "Terminated", "Failed")


@pytest.mark.simulated_nodes
async def test_a_delayed_action_is_dropped_when_the_lost_pod_runs_again(cluster: Cluster) -> None:
    """The eviction's timer would end the job as Terminated long before that of the witness ends it as Aborted."""
    delayed: list[Json] = [
        {"event": "PodEvicted", "action": "TerminateJob", "timeout": "12s"},
        {"exitCode": 7, "action": "AbortJob", "timeout": "13s"},
    ]
    await cluster.create(JOBS, vcjob("healed", replicas=2, command="sleep 600", policies=delayed))
    before = await cluster.running("healed", 2)
    await cluster.phase_is("healed", "Running")
    await cluster.delete(PODS, "healed-worker-0", grace_period_seconds=0)
    await eventually(
        lambda: executions(cluster, "healed"), lambda seen: "Execute action TerminateJob after 12s" in seen, what="told"
    )
    await eventually(
        lambda: cluster.pods("healed"),
        lambda pods: (
            "Running" in [pod["status"].get("phase") for pod in pods if pod["metadata"]["uid"] not in before.values()]
        ),
        what="the lost pod running again",
    )
    notes = {"simulation.stromboli.dev/run-seconds": "0", "simulation.stromboli.dev/exit-code": "7"}
    await cluster.patch(PODS, "healed-worker-1", {"metadata": {"annotations": notes}})
    await cluster.phase_is("healed", "Aborted", "Terminated")
    assert phase(await cluster.job("healed")) == "Aborted"
