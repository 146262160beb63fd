"""What plugins of training frameworks give to containers, tried out: programs of busybox take the frameworks' place."""

from __future__ import annotations

import json

from e2e.cluster import COMPLETE, Cluster, Json, eventually
from e2e.node.kubectl import Kubectl
from e2e.node.roles import PATIENCE, Role, lines, team
from e2e.node.workloads import Workloads
from stromboli.api.kinds import CONFIG_MAPS, JOBS, SERVICES

TELL = "env | grep -E '^(MASTER_ADDR|MASTER_PORT|RANK|WORLD_SIZE)=' | sort"
ANSWER = f"{TELL} > /tmp/index.html; exec httpd -f -p $MASTER_PORT -h /tmp"
ASK = f"{TELL}; wget -q -O - http://$MASTER_ADDR:$MASTER_PORT/"


def rendezvous(rank: int) -> list[str]:
    """The environment of a process of the next test."""
    return ["MASTER_ADDR=torch-master-0.torch", "MASTER_PORT=23456", f"RANK={rank}", "WORLD_SIZE=3"]


def ranks(pods: list[Json]) -> dict[str, str]:
    """The rank that ``hcclrank`` has written to each pod."""
    return {pod["metadata"]["name"]: pod["metadata"]["annotations"]["hccl/rankIndex"] for pod in pods}


async def test_pytorchs_workers_wait_for_their_master_and_reach_it(
    cluster: Cluster, kubectl: Kubectl, workloads: Workloads
) -> None:
    """Workers try once: that the master answers by then is what they have waited for."""
    roles = {"master": Role(ANSWER), "worker": Role(ASK, replicas=2, policies=[COMPLETE])}
    wait = ["--wait-master-enabled", f"--wait-master-image={workloads.image}"]
    await cluster.create(JOBS, team(workloads, "torch", roles, {"pytorch": wait, "hcclrank": []}))
    started = await eventually(lambda: cluster.pods("torch"), lambda pods: len(pods) == 3, what="all pods")
    assert ranks(started) == {"torch-master-0": "0", "torch-worker-0": "1", "torch-worker-1": "2"}

    await cluster.phase_is("torch", "Completed", within=PATIENCE)
    for index in range(2):
        said = await lines(kubectl, f"torch-worker-{index}", "--container=worker")
        assert said == [*rendezvous(rank=index + 1), *rendezvous(rank=0)]


async def test_tensorflows_workers_reach_their_parameters(
    cluster: Cluster, kubectl: Kubectl, workloads: Workloads
) -> None:
    answer = "echo parameters > /tmp/index.html; exec httpd -f -p 2222 -h /tmp"
    ask = """\
echo "$TF_CONFIG"
address=$(echo "$TF_CONFIG" | sed 's/.*"ps":\\["\\([^"]*\\)".*/\\1/')
until wget -q -O - http://$address/ 2>/dev/null; do sleep 0.2; done
"""
    roles = {"ps": Role(answer), "worker": Role(ask, replicas=2, policies=[COMPLETE])}
    await cluster.create(JOBS, team(workloads, "flow", roles, {"tensorflow": []}))

    await cluster.phase_is("flow", "Completed", within=PATIENCE)
    members = {"ps": ["flow-ps-0.flow:2222"], "worker": [f"flow-worker-{index}.flow:2222" for index in range(2)]}
    for index in range(2):
        config, answer = await lines(kubectl, f"flow-worker-{index}")
        assert json.loads(config) == {"cluster": members, "task": {"type": "worker", "index": index}}
        assert answer == "parameters"


RAY = """\
#!/bin/sh
# In ray's place: says how it was called, answers on the ports that it is to open, visits whom it is to join.
echo "ray $*"
for argument; do
  case $argument in
    --address=*) until wget -q -O - "http://${argument#*=}/" 2>/dev/null; do sleep 0.2; done ;;
    --*port=*) port=${argument##*=}; mkdir /tmp/$port; echo "head on $port" > /tmp/$port/index.html
               httpd -p $port -h /tmp/$port ;;
  esac
done
case $* in *--head*) exec sleep 3600 ;; esac
"""
PORTS = {"gcs": 6379, "dashboard": 8265, "client-server": 10001}
VISIT = f"""\
for port in {" ".join(map(str, PORTS.values()))}; do
  until wget -q -O - http://rays-head-svc:$port/ 2>/dev/null; do sleep 0.2; done
done
"""


def with_ray(job: Json) -> Json:
    """The job with the program above among those of its containers."""
    for task in job["spec"]["tasks"]:
        spec = task["template"]["spec"]
        spec["volumes"] = [{"name": "ray", "configMap": {"name": "ray", "defaultMode": 0o755}}]
        spec["containers"][0]["volumeMounts"] = [{"name": "ray", "mountPath": "/usr/bin/ray", "subPath": "ray"}]
    return job


async def test_rays_workers_join_its_head_and_clients_reach_it_by_its_service(
    cluster: Cluster, kubectl: Kubectl, workloads: Workloads
) -> None:
    """The commands of head and workers are the plugin's; the job is done when one worker and one client are."""
    program = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ray"}, "data": {"ray": RAY}}
    await cluster.create(CONFIG_MAPS, program)
    roles = {"head": Role("replaced"), "worker": Role("replaced"), "client": Role(VISIT)}
    await cluster.create(JOBS, with_ray(team(workloads, "rays", roles, {"ray": []}, minSuccess=2)))
    await cluster.phase_is("rays", "Running", "Completed", within=PATIENCE)
    service = await cluster.client.get(SERVICES, "rays-head-svc", cluster.namespace)
    (head,) = [pod for pod in await cluster.pods("rays") if pod["metadata"]["name"] == "rays-head-0"]

    await cluster.phase_is("rays", "Completed", within=PATIENCE)
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == PORTS
    assert {port["name"]: port["containerPort"] for port in head["spec"]["containers"][0]["ports"]} == PORTS
    assert await lines(kubectl, "rays-worker-0") == [
        "ray start --block --address=rays-head-0.rays:6379",
        "head on 6379",
    ]
    assert await lines(kubectl, "rays-client-0") == [f"head on {port}" for port in PORTS.values()]


async def test_ascends_ranks_count_through_masters_and_workers(
    cluster: Cluster, kubectl: Kubectl, workloads: Workloads
) -> None:
    """Containers read the rank from a file, as Ascend's do."""
    roles = {"master": Role("cat /about/rank", replicas=2), "worker": Role("cat /about/rank", replicas=2)}
    job = team(workloads, "ascend", roles, {"hcclrank": []})
    rank = {"path": "rank", "fieldRef": {"fieldPath": "metadata.annotations['hccl/rankIndex']"}}
    for task in job["spec"]["tasks"]:
        spec = task["template"]["spec"]
        spec["volumes"] = [{"name": "about", "downwardAPI": {"items": [rank]}}]
        spec["containers"][0]["volumeMounts"] = [{"name": "about", "mountPath": "/about"}]
    await cluster.create(JOBS, job)

    await cluster.phase_is("ascend", "Completed", within=PATIENCE)
    pods = ["ascend-master-0", "ascend-master-1", "ascend-worker-0", "ascend-worker-1"]
    assert [await lines(kubectl, pod) for pod in pods] == [["0"], ["1"], ["2"], ["3"]]
