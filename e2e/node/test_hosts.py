"""What ``env`` and ``svc`` give to containers: indexes, lists of hosts, and names that resolve."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from e2e.cluster import COMPLETE, Cluster, eventually, is_running, uids
from e2e.node.kubectl import Kubectl
from e2e.node.roles import LONG, PATIENCE, Role, lines, team
from e2e.node.workloads import Workloads
from e2e.test_job_sizes import scale
from stromboli.api.kinds import JOBS, PODS

TELL = """\
env | grep -E '^V[CK]_' | sort
for file in $(ls /etc/volcano); do echo "$file: $(tr '\\n' ' ' < /etc/volcano/$file)"; done
"""


def told(index: int) -> list[str]:
    """What a pod of the job in the next test is to say; files have a space for each end of a line."""
    ps, workers = "team-ps-0.team", ["team-tf-worker-0.team", "team-tf-worker-1.team"]
    return [
        f"VC_PS_HOSTS={ps}",
        "VC_PS_NUM=1",
        f"VC_TASK_INDEX={index}",
        f"VC_TF_WORKER_HOSTS={','.join(workers)}",
        "VC_TF_WORKER_NUM=2",
        f"VK_TASK_INDEX={index}",
        f"VC_PS_HOSTS: {ps}",
        "VC_PS_NUM: 1",
        f"VC_TF_WORKER_HOSTS: {','.join(workers)}",
        "VC_TF_WORKER_NUM: 2",
        f"ps.host: {ps}",
        f"tf_worker.host: {' '.join(workers)}",
    ]


async def test_containers_are_told_their_index_and_all_hosts_of_their_job(
    cluster: Cluster, kubectl: Kubectl, workloads: Workloads
) -> None:
    roles = {"ps": Role(TELL), "tf-worker": Role(TELL, replicas=2)}
    job = team(workloads, "team", roles, {"env": [], "svc": []})
    for task in job["spec"]["tasks"]:
        task["template"]["spec"]["initContainers"] = [{"name": "before", "command": ["sh", "-c", TELL]}]
    await cluster.create(JOBS, workloads.on(job))

    await cluster.phase_is("team", "Completed", within=PATIENCE)
    for pod, index in {"team-ps-0": 0, "team-tf-worker-0": 0, "team-tf-worker-1": 1}.items():
        assert await lines(kubectl, pod) == told(index), pod
        assert await lines(kubectl, pod, "--container=before") == told(index), f"{pod}, before"


PING = "ping -c 1 -W 1 $host 2>/dev/null | sed -n 's/^64 bytes from \\(.*\\): .*/\\1/p'"
ASK_AROUND = f'for host in $(cat /etc/volcano/worker.host); do echo "$host $({PING})"; done'


async def answers(cluster: Cluster, kubectl: Kubectl, pod: str) -> dict[str, str]:
    """By each host in the pod's file, the address that answers there; empty where none does.

    The kubelet looks at a running pod's files once a minute or so, and when the pod changes, for which we see.
    """
    pods = await cluster.client.get(PODS, pod, cluster.namespace)
    seen = int(pods["metadata"].get("annotations", {}).get("looked-at", 0))
    await cluster.patch(PODS, pod, {"metadata": {"annotations": {"looked-at": str(seen + 1)}}})
    said = await kubectl("exec", pod, "--", "sh", "-c", ASK_AROUND)
    return {host: address for host, _, address in (line.partition(" ") for line in said.splitlines())}


async def find_each_other(cluster: Cluster, kubectl: Kubectl, pods: Sequence[str]) -> None:
    """Wait until each of the pods knows all of them, by host names that lead to their addresses."""
    seen = await eventually(
        lambda: cluster.pods("grows"),
        lambda seen: uids(seen).keys() == set(pods) and all(map(is_running, seen)),
        within=PATIENCE,
        what=f"{pods} run",
    )
    want = {f"{pod['metadata']['name']}.grows": pod["status"]["podIP"] for pod in seen}
    for pod in pods:
        look = partial(answers, cluster, kubectl, pod)
        await eventually(look, lambda seen: seen == want, within=PATIENCE, what=f"{pod} finds {want}")


async def test_pods_find_each_other_by_name_while_their_job_grows_and_shrinks(
    cluster: Cluster, kubectl: Kubectl, workloads: Workloads
) -> None:
    await cluster.create(JOBS, team(workloads, "grows", {"worker": Role(LONG, replicas=2)}, {"svc": []}))
    await find_each_other(cluster, kubectl, ["grows-worker-0", "grows-worker-1"])
    first = await cluster.running("grows", 2)

    await scale(cluster, "grows", 3)
    await find_each_other(cluster, kubectl, ["grows-worker-0", "grows-worker-1", "grows-worker-2"])
    assert first.items() <= (await cluster.running("grows", 3)).items(), "those that were there have learnt"

    await scale(cluster, "grows", 1)
    await find_each_other(cluster, kubectl, ["grows-worker-0"])


async def test_a_pod_that_is_never_ready_is_found_when_the_job_says_so(
    cluster: Cluster, kubectl: Kubectl, workloads: Workloads
) -> None:
    find = f'host=early-worker-0.early; until [ -n "$({PING})" ]; do sleep 0.2; done'
    roles = {"worker": Role(LONG), "finder": Role(find, policies=[COMPLETE])}
    job = team(workloads, "early", roles, {"svc": ["--publish-not-ready-addresses=true"]})
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1}
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["readinessProbe"] = probe
    await cluster.create(JOBS, job)
    await cluster.phase_is("early", "Completed", within=PATIENCE)
