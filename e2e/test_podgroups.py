"""PodGroups of ordinary workloads: gangs that roll, jobs of other kinds, and what is left behind."""

from __future__ import annotations

from e2e.cluster import Cluster, Json, eventually
from stromboli.api.kinds import BATCH_JOBS, DEPLOYMENTS, POD_GROUPS, PODS, REPLICA_SETS

GROUP_NAME = "scheduling.k8s.io/group-name"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
QUEUE = "scheduling.volcano.sh/queue-name"


def template(app: str, *, command: str = "sleep 600", version: str = "1", cpu: str = "100m", **spec: object) -> Json:
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["sh", "-c", command],
        "env": [{"name": "VERSION", "value": version}],
        "resources": {"requests": {"cpu": cpu}},
    }
    return {
        "metadata": {"labels": {"app": app}, "annotations": {QUEUE: "default"}},
        "spec": {
            "schedulerName": "volcano",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def deployment(name: str, replicas: int, minimum: int, **of_template: str) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "annotations": {MIN_MEMBER: str(minimum)}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": template(name, **of_template),
        },
    }


async def groups(cluster: Cluster) -> list[Json]:
    return await cluster.client.list(POD_GROUPS, cluster.namespace)


async def running(cluster: Cluster, app: str) -> list[Json]:
    found = await cluster.client.list(PODS, cluster.namespace, label_selector=f"app={app}")
    return [pod for pod in found if pod["status"].get("phase") == "Running"]


def version(pod: Json) -> str:
    return str(pod["spec"]["containers"][0]["env"][0]["value"])


async def test_a_gang_deployment_rolls_and_leaves_one_group(cluster: Cluster) -> None:
    await cluster.create(DEPLOYMENTS, deployment("web", 2, 2))
    await eventually(lambda: running(cluster, "web"), lambda pods: len(pods) == 2)
    [group] = await eventually(
        lambda: groups(cluster), lambda found: [one["spec"]["minMember"] for one in found] == [2]
    )
    await cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": template("web", version="2")}})
    await eventually(
        lambda: running(cluster, "web"), lambda pods: sorted(map(version, pods)) == ["2", "2"], what="all rolled"
    )
    [left] = await eventually(
        lambda: groups(cluster), lambda found: [one["spec"]["minMember"] for one in found] == [2], what="one group"
    )
    assert left["metadata"]["uid"] != group["metadata"]["uid"]
    sets = await cluster.client.list(REPLICA_SETS, cluster.namespace)
    [current] = [one for one in sets if one["spec"]["replicas"] == 2]
    assert left["metadata"]["name"] == f"podgroup-{current['metadata']['uid']}"
    await cluster.delete(DEPLOYMENTS, "web")
    await eventually(lambda: groups(cluster), lambda found: not found)


async def test_an_indexed_job_is_one_gang_and_waits_as_one(cluster: Cluster) -> None:
    spec = {
        "completionMode": "Indexed",
        "completions": 3,
        "parallelism": 3,
        "template": template("idx", command="sleep 1", cpu="500m", restartPolicy="Never"),
    }
    await cluster.create(
        BATCH_JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "idx"}, "spec": spec}
    )
    [group] = await eventually(lambda: groups(cluster), lambda found: len(found) == 1)
    assert (group["spec"]["minMember"], group["spec"]["minResources"]["cpu"]) == (3, "1500m")
    pods = await eventually(
        lambda: cluster.client.list(PODS, cluster.namespace, label_selector="app=idx"),
        lambda found: len(found) == 3 and all(pod["status"].get("phase") == "Succeeded" for pod in found),
    )
    assert {pod["metadata"]["annotations"][GROUP_NAME] for pod in pods} == {group["metadata"]["name"]}
    await cluster.delete(BATCH_JOBS, "idx", propagation="Background")
    await eventually(lambda: groups(cluster), lambda found: not found)


async def test_a_bare_pod_that_has_finished_reserves_nothing(cluster: Cluster) -> None:
    pod = template("bare", command="sleep 0", cpu="1", restartPolicy="Never")
    await cluster.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": {"name": "bare"}})
    await eventually(
        lambda: groups(cluster),
        lambda found: len(found) == 1 and found[0]["spec"]["minResources"] == {"count/pods": "1"},
    )
    await cluster.delete(PODS, "bare")
    await eventually(lambda: groups(cluster), lambda found: not found)
