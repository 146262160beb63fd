"""What belongs to a job besides its pods: objects of its plugins, claims of its volumes, and its size."""

from __future__ import annotations

from functools import partial

from e2e.cluster import COMPLETE, Cluster, Json, eventually, phase, vcjob
from stromboli.api.kinds import (
    CONFIG_MAPS,
    JOBS,
    NETWORK_POLICIES,
    PERSISTENT_VOLUME_CLAIMS,
    SECRETS,
    SERVICES,
    Kind,
)

PLUGINS: Json = {"env": [], "svc": [], "ssh": []}
MADE = {CONFIG_MAPS: "linked-svc", SECRETS: "linked-ssh", SERVICES: "linked", NETWORK_POLICIES: "linked"}


async def owned(cluster: Cluster, kind: Kind, job: Json) -> list[str]:
    """Names of objects of the kind that the job owns."""
    listed = await cluster.client.list(kind, cluster.namespace)
    return [
        item["metadata"]["name"]
        for item in listed
        if any(owner["uid"] == job["metadata"]["uid"] for owner in item["metadata"].get("ownerReferences", ()))
    ]


async def test_plugins_make_what_the_pods_need_and_it_goes_with_the_job(cluster: Cluster) -> None:
    job = await cluster.create(JOBS, vcjob("linked", replicas=2, command="sleep 600", plugins=PLUGINS))
    await cluster.phase_is("linked", "Running")
    for kind, name in MADE.items():
        assert await owned(cluster, kind, job) == [name], kind.kind
    hosts = (await cluster.client.get(CONFIG_MAPS, "linked-svc", cluster.namespace))["data"]
    assert hosts["worker.host"].split() == ["linked-worker-0.linked", "linked-worker-1.linked"]
    (pod,) = [pod for pod in await cluster.pods("linked") if pod["metadata"]["name"] == "linked-worker-1"]
    environment = {item["name"]: item.get("value") for item in pod["spec"]["containers"][0]["env"]}
    assert environment["VC_TASK_INDEX"] == "1"
    await cluster.delete(JOBS, "linked")
    await cluster.gone(JOBS, "linked")
    for kind in MADE:
        await eventually(partial(owned, cluster, kind, job), lambda seen: not seen, what=f"no {kind.kind}")


async def test_plugins_clear_up_when_the_job_has_ended(cluster: Cluster) -> None:
    given = vcjob("ends", replicas=2, command="sleep 2", plugins=PLUGINS, task_policies=[COMPLETE])
    job = await cluster.create(JOBS, given)
    await cluster.phase_is("ends", "Completed")
    for kind in MADE:
        await eventually(partial(owned, cluster, kind, job), lambda seen: not seen, what=f"no {kind.kind}")


async def test_a_job_that_grows_gets_pods_and_names_them_to_the_others(cluster: Cluster) -> None:
    job = vcjob("grows", replicas=2, command="sleep 600", plugins=PLUGINS)
    await cluster.create(JOBS, job)
    await cluster.phase_is("grows", "Running")
    seen = await cluster.job("grows")
    tasks = [{**seen["spec"]["tasks"][0], "replicas": 3, "minAvailable": 3}]
    await cluster.patch(JOBS, "grows", {"spec": {"minAvailable": 3, "tasks": tasks}})
    await eventually(lambda: cluster.job("grows"), lambda seen: seen["status"].get("running") == 3, what="3 running")
    group = await cluster.pod_group("grows")
    assert group["spec"]["minMember"] == 3
    await eventually(
        lambda: cluster.client.get(CONFIG_MAPS, "grows-svc", cluster.namespace),
        lambda seen: "grows-worker-2.grows" in seen["data"]["worker.host"],
        what="the third pod among the hosts",
    )


async def test_the_claim_of_a_volume_is_made_named_and_kept_for_the_job(cluster: Cluster) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/data", "volumeClaim": claim}]
    job = await cluster.create(JOBS, vcjob("stores", replicas=1, volumes=volumes, task_policies=[COMPLETE]))
    (name,) = await eventually(
        lambda: owned(cluster, PERSISTENT_VOLUME_CLAIMS, job), lambda seen: len(seen) == 1, within=20, what="one claim"
    )
    seen = await eventually(
        lambda: cluster.job("stores"),
        lambda seen: seen["spec"]["volumes"][0].get("volumeClaimName") == name,
        what="the claim's name in the job",
    )
    assert phase(seen) in ("", "Pending", "Inqueue", "Running", "Completed")
    pods = await eventually(lambda: cluster.pods("stores"), lambda seen: len(seen) == 1)
    volumes = pods[0]["spec"]["volumes"]
    assert name in [item["persistentVolumeClaim"]["claimName"] for item in volumes if "persistentVolumeClaim" in item]
