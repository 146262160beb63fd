"""The policy file of a running scheduler: a good one is taken in, a broken one is told of and changes nothing."""

from __future__ import annotations

from e2e.cluster import COMPLETE, Cluster, eventually, vcjob
from e2e.policies import STAYS, PolicyFile
from stromboli.api.kinds import JOBS


async def test_a_changed_policy_is_in_force_without_a_restart(cluster: Cluster, policy_file: PolicyFile) -> None:
    ordinary = policy_file.content
    await policy_file.put(ordinary.replace('"enqueue, allocate, backfill"', '"enqueue"'))
    await cluster.create(JOBS, vcjob("held", replicas=2, command="sleep 0", task_policies=[COMPLETE]))
    pods = await eventually(lambda: cluster.pods("held"), lambda pods: len(pods) == 2, what="an admitted job")
    assert not [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")], "no action places pods"
    await policy_file.put(ordinary)
    await cluster.phase_is("held", "Completed")


async def test_a_broken_policy_is_told_of_and_the_one_before_stays(cluster: Cluster, policy_file: PolicyFile) -> None:
    ordinary = policy_file.content
    told = await policy_file.put(ordinary.replace("allocate", "alocate"), STAYS)
    assert "failed to find Action  alocate" in told
    await cluster.create(JOBS, vcjob("placed", replicas=2, command="sleep 0", task_policies=[COMPLETE]))
    await cluster.phase_is("placed", "Completed")
    await policy_file.put(ordinary)
