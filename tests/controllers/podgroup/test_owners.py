"""Pods of other systems' jobs, and of Kubernetes' own groups, get one gang an owner."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint

import pytest

from stromboli.api import kinds, names
from stromboli.api.kinds import Kind
from stromboli.controllers.podgroup import controller, gangs
from stromboli.controllers.podgroup.controller import PodGroupController
from stromboli.controllers.podgroup.gangs import GangKind, GangSize
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from stromboli.testing.faults import Fault
from tests.controllers.stage import Stage, stage

JOB_SETS = Kind("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
LWS = Kind("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")
MPI_JOBS = Kind("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")
CLUSTERS = Kind("ray.io", "v1", "rayclusters", "RayCluster")
RAY_JOBS = Kind("ray.io", "v1", "rayjobs", "RayJob")
NATIVE = Kind("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")
SPARK = Kind("sparkoperator.k8s.io", "v1beta2", "sparkapplications", "SparkApplication")

Owner = tuple[Kind, JsonObject]
TEMPLATE: JsonObject = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}


@asynccontextmanager
async def groups(*faults: Fault) -> AsyncIterator[Stage]:
    async with stage(start=False) as scene:
        for fault in faults:
            scene.server.faults.add(fault)
        await scene.run(lambda informers: PodGroupController(scene.client, informers))
        yield scene


def put(scene: Stage, kind: Kind, name: str, owner: Owner | None = None, **fields: object) -> Owner:
    meta: JsonObject = {"name": name, "namespace": "default", "annotations": fields.pop("annotations", {})}
    meta["ownerReferences"] = [] if owner is None else [reference(owner)]
    return kind, scene.server.put(kind, {"metadata": meta, **fields})


def reference(owner: Owner) -> JsonObject:
    kind, obj = owner
    named = {"apiVersion": kind.api_version, "kind": kind.kind, "name": json.key_of(obj)[1], "uid": json.uid_of(obj)}
    return {**named, "controller": True}


def put_pod(scene: Stage, name: str, owner: Owner | None = None, *, queue: str = "q", group: str = "") -> Owner:
    spec: JsonObject = {"schedulerName": "volcano", **TEMPLATE["spec"]}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    notes = {names.POD_QUEUE_NAME: queue} if queue else {}
    return put(scene, kinds.PODS, name, owner, spec=spec, annotations=notes, status={"phase": "Pending"})


def named(owner: Owner) -> str:
    return f"podgroup-{json.uid_of(owner[1])}"


def group_of(scene: Stage, pod: str) -> str | None:
    found: str | None = scene.server.get(kinds.PODS, pod, "default")["metadata"]["annotations"].get(names.GROUP_NAME)
    return found


async def gang(scene: Stage, owner: Owner, *pods: str) -> JsonObject:
    """Wait until these pods are one gang, named after that owner; answers its spec."""
    name = named(owner)
    await scene.until(lambda: {group_of(scene, pod) for pod in pods} == {name}, f"pods in {name}")
    assert scene.names_of(kinds.POD_GROUPS) == [name]
    found = scene.server.get(kinds.POD_GROUPS, name, "default")
    spec: JsonObject = found["spec"]
    return spec


def indexed(parallelism: int) -> JsonObject:
    return {"completionMode": "Indexed", "parallelism": parallelism, "template": TEMPLATE}


async def test_an_indexed_job() -> None:
    async with groups() as scene:
        owner = put(scene, kinds.BATCH_JOBS, "j", spec=indexed(2))
        for name in ("p0", "p1"):
            put_pod(scene, name, owner)
        spec = await gang(scene, owner, "p0", "p1")
        assert (spec["minMember"], spec["queue"], spec["minResources"]["cpu"]) == (2, "q", "2")


async def test_a_job_that_names_no_queue_is_no_gang() -> None:
    async with groups() as scene:
        owner = put(scene, kinds.BATCH_JOBS, "j", spec=indexed(2))
        put_pod(scene, "p0", owner, queue="")
        spec = await gang(scene, owner, "p0")
        assert spec["minMember"] == 1


async def test_an_annotation_of_the_owner_wins() -> None:
    async with groups() as scene:
        owner = put(scene, kinds.BATCH_JOBS, "j", spec=indexed(4), annotations={names.GROUP_MIN_MEMBER: "3"})
        put_pod(scene, "p0", owner)
        spec = await gang(scene, owner, "p0")
        assert (spec["minMember"], spec["minResources"]["cpu"]) == (3, "3")


async def test_a_job_set_is_one_gang_of_all_its_jobs() -> None:
    async with groups() as scene:
        jobs = [{"name": "a", "replicas": 2, "template": {"spec": {"parallelism": 2, "template": TEMPLATE}}}]
        owner = put(scene, JOB_SETS, "js", spec={"replicatedJobs": jobs}, annotations={"volcano.sh/note": "x"})
        for number in range(2):
            job = put(scene, kinds.BATCH_JOBS, f"js-a-{number}", owner, spec={"parallelism": 2, "template": TEMPLATE})
            put_pod(scene, f"p{number}", job)
        assert (await gang(scene, owner, "p0", "p1"))["minMember"] == 4
        found = scene.server.get(kinds.POD_GROUPS, named(owner), "default")
        assert found["metadata"]["ownerReferences"] == [reference(owner)]
        assert found["metadata"]["annotations"] == {"volcano.sh/note": "x"}


async def test_launcher_and_workers_of_an_mpi_job() -> None:
    async with groups() as scene:
        roles = {"Launcher": {"replicas": 1, "template": TEMPLATE}, "Worker": {"replicas": 2, "template": TEMPLATE}}
        owner = put(scene, MPI_JOBS, "mpi", spec={"mpiReplicaSpecs": roles})
        launcher = put(scene, kinds.BATCH_JOBS, "mpi-launcher", owner, spec={"template": TEMPLATE})
        put_pod(scene, "l", launcher)
        put_pod(scene, "w", owner)
        assert (await gang(scene, owner, "l", "w"))["minMember"] == 3


async def test_a_ray_job_is_the_gang_of_its_cluster() -> None:
    async with groups() as scene:
        job = put(scene, RAY_JOBS, "rj")
        workers = [{"replicas": 2, "template": TEMPLATE}]
        spec = {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": workers}
        owner = put(scene, CLUSTERS, "rc", job, spec=spec)
        put_pod(scene, "head", owner)
        assert (await gang(scene, owner, "head"))["minMember"] == 3


async def test_every_leader_with_its_workers_is_a_gang() -> None:
    async with groups() as scene:
        template = {"size": 3, "workerTemplate": TEMPLATE}
        owner = put(scene, LWS, "lws", spec={"replicas": 2, "leaderWorkerTemplate": template})
        leaders = put(scene, kinds.STATEFUL_SETS, "lws", owner, spec={"replicas": 2})
        leader = put_pod(scene, "lws-0", leaders)
        workers = put(scene, kinds.STATEFUL_SETS, "lws-0", leader, spec={"replicas": 2})
        put_pod(scene, "lws-0-1", workers)
        assert (await gang(scene, leader, "lws-0", "lws-0-1"))["minMember"] == 3
        second = put_pod(scene, "lws-1", leaders)
        await scene.until(lambda: group_of(scene, "lws-1") == named(second))
        scene.server.put(kinds.STATEFUL_SETS, {**workers[1], "spec": {"replicas": 0}})
        put_pod(scene, "lws-1-x", second)
        await scene.until(lambda: group_of(scene, "lws-1-x") == named(second))
        assert named(leader) in scene.names_of(kinds.POD_GROUPS), "it is not named after the workers' set"


async def test_spark_executors_join_their_driver() -> None:
    async with groups() as scene:
        spec = {"driver": {"memory": "1g"}, "executor": {"instances": 2, "memory": "1g"}}
        owner = put(scene, SPARK, "sa", spec=spec)
        driver = put_pod(scene, "driver", owner)
        put_pod(scene, "exec-1", driver)
        found = await gang(scene, owner, "driver", "exec-1")
        assert (found["minMember"], found["minResources"]["cpu"]) == (1, "3")


async def test_an_owner_that_is_gone_or_another_or_broken_is_none() -> None:
    async with groups() as scene:
        owner = put(scene, kinds.BATCH_JOBS, "j", spec=indexed(2))
        scene.server.remove(kinds.BATCH_JOBS, "j", "default")
        put(scene, kinds.BATCH_JOBS, "j", spec=indexed(9))
        put_pod(scene, "of-the-old", owner)
        await scene.until(lambda: group_of(scene, "of-the-old") == named(owner))
        assert scene.server.get(kinds.POD_GROUPS, named(owner), "default")["spec"]["minMember"] == 1
        broken = put(scene, CLUSTERS, "broken", spec={"workerGroupSpecs": "none"})
        put_pod(scene, "of-the-broken", broken)
        await scene.until(lambda: group_of(scene, "of-the-broken") == named(broken))


async def test_a_kind_that_may_not_be_read_is_none() -> None:
    async with groups() as scene:
        owner = put(scene, CLUSTERS, "rc", spec={})
        scene.server.faults.fail(403, verb="get", kind=CLUSTERS, times=None, reason="Forbidden")
        put_pod(scene, "p", owner)
        assert (await gang(scene, owner, "p"))["minMember"] == 1


async def test_a_gang_that_somebody_deletes_comes_back() -> None:
    async with groups() as scene:
        owner = put(scene, CLUSTERS, "rc", spec={"workerGroupSpecs": [{"replicas": 1, "template": TEMPLATE}]})
        put_pod(scene, "p", owner)
        await gang(scene, owner, "p")
        scene.server.remove(kinds.POD_GROUPS, named(owner), "default")
        await scene.until(lambda: scene.names_of(kinds.POD_GROUPS) == [named(owner)])


# -- kinds of others ---------------------------------------------------------------------------------------------------

MINE = Kind("example.com", "v1", "swarms", "Swarm")
SWARM = GangKind(MINE, lambda owner: GangSize(owner["spec"]["bees"]))
NOT_ONE = object()


@pytest.fixture
def clean_table() -> Iterator[None]:
    gangs.table.cache_clear()
    yield
    gangs.table.cache_clear()


def offer(monkeypatch: pytest.MonkeyPatch, attribute: str) -> None:
    point = EntryPoint("swarms", f"{__name__}:{attribute}", gangs.ENTRY_POINTS)
    monkeypatch.setattr(gangs, "entry_points", lambda group: [point] if group == gangs.ENTRY_POINTS else [])


async def test_a_kind_can_be_added(monkeypatch: pytest.MonkeyPatch, clean_table: None) -> None:
    offer(monkeypatch, "SWARM")
    async with groups() as scene:
        owner = put(scene, MINE, "s", spec={"bees": 5})
        put_pod(scene, "p", owner)
        spec = await gang(scene, owner, "p")
        assert (spec["minMember"], spec["minResources"]["cpu"]) == (5, "5")


def test_what_is_added_must_be_a_kind(monkeypatch: pytest.MonkeyPatch, clean_table: None) -> None:
    offer(monkeypatch, "NOT_ONE")
    with pytest.raises(TypeError, match="entry point swarms of stromboli.podgroup.gangs is a object, not a GangKind"):
        gangs.table()


# -- Kubernetes' own groups --------------------------------------------------------------------------------------------


async def test_pods_of_a_group_of_kubernetes_own_are_one_gang() -> None:
    async with groups() as scene:
        owner = put(scene, NATIVE, "train", spec={"schedulingPolicy": {"gang": {"minCount": 3}}})
        job = put(scene, kinds.BATCH_JOBS, "j", spec=indexed(9))
        for name in ("p0", "p1"):
            put_pod(scene, name, job, group="train")
        assert (await gang(scene, owner, "p0", "p1"))["minMember"] == 3


async def test_its_basic_policy_is_no_gang() -> None:
    async with groups() as scene:
        owner = put(scene, NATIVE, "loose", spec={"schedulingPolicy": {"basic": {}}})
        put_pod(scene, "p0", group="loose", queue="")
        assert (await gang(scene, owner, "p0"))["minMember"] == 1


async def test_pods_of_one_owner_may_be_in_several() -> None:
    async with groups() as scene:
        owners = [put(scene, NATIVE, name, spec={"schedulingPolicy": {"gang": {"minCount": 2}}}) for name in "ab"]
        job = put(scene, kinds.BATCH_JOBS, "j", spec=indexed(4))
        for name in "ab":
            put_pod(scene, f"p-{name}", job, group=name)
        await scene.until(lambda: [group_of(scene, f"p-{name}") for name in "ab"] == [named(one) for one in owners])


async def test_a_pod_waits_for_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "RETRY", 0.05)
    async with groups() as scene:
        put_pod(scene, "early", group="later")
        put_pod(scene, "other")
        await scene.until(lambda: group_of(scene, "other"))
        assert group_of(scene, "early") is None
        owner = put(scene, NATIVE, "later", spec={"schedulingPolicy": {"gang": {"minCount": 2}}})
        await scene.until(lambda: group_of(scene, "early") == named(owner))
