"""Deployments, ReplicaSets, StatefulSets and Jobs come to what their specs say."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.controllers.deployments import (
    HASH_LABEL,
    DeploymentController,
    bounds,
    plan_rollout,
    template_hash,
)
from stromboli.localcluster.controllers.jobs import BatchJobController, ranges
from stromboli.localcluster.controllers.replicasets import ReplicaSetController
from stromboli.localcluster.controllers.scheduling import DefaultScheduler
from stromboli.localcluster.controllers.statefulsets import StatefulSetController
from stromboli.localcluster.nodes.lifecycles import PREFIX, Settings
from stromboli.localcluster.requests import DeleteOptions
from stromboli.localcluster.storage import Object
from tests.localcluster.sim.simulation import Simulation, phases, pod, simulation

DEPLOYING = (DeploymentController, ReplicaSetController, DefaultScheduler)


def template(image: str = "v1", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    metadata: Object = {"labels": {"app": "web"}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": image}], **spec}}


def workload(kind: Kind, name: str = "web", **spec: Any) -> Object:
    body = {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": body}


async def change(cluster: Simulation, kind: Kind, name: str = "web", **spec: Any) -> None:
    """Change fields of a workload's spec, whoever else writes it meanwhile."""
    present = cluster.find(kind, name)
    assert present is not None
    await cluster.registry.update(kind, {**present, "spec": {**present["spec"], **spec}})


def rolled_out(cluster: Simulation, replicas: int, kind: Kind = kinds.DEPLOYMENTS) -> bool:
    found = cluster.find(kind, "web")
    status = (found or {}).get("status") or {}
    return bool(
        found
        and status.get("observedGeneration") == found["metadata"]["generation"]
        and [status.get(one, 0) for one in ("replicas", "updatedReplicas", "availableReplicas")] == [replicas] * 3
    )


async def test_a_deployment_runs() -> None:
    async with simulation(*DEPLOYING, nodes=2) as cluster:
        await cluster.create(workload(kinds.DEPLOYMENTS, replicas=3))
        await cluster.until(lambda: rolled_out(cluster, 3))
        found = cluster.find(kinds.DEPLOYMENTS, "web")
        assert found is not None
        assert {one["type"]: one["status"] for one in found["status"]["conditions"]} == {
            "Available": "True",
            "Progressing": "True",
        }
        (only,) = cluster.all(kinds.REPLICA_SETS)
        assert only["metadata"]["name"] == f"web-{only['metadata']['labels'][HASH_LABEL]}"
        assert set(phases(cluster.all(kinds.PODS)).values()) == {"Running"}


async def test_a_deployment_scales_both_ways() -> None:
    async with simulation(*DEPLOYING, nodes=2) as cluster:
        await cluster.create(workload(kinds.DEPLOYMENTS, replicas=1))
        await cluster.until(lambda: rolled_out(cluster, 1))
        await change(cluster, kinds.DEPLOYMENTS, replicas=5)
        await cluster.until(lambda: rolled_out(cluster, 5))
        await change(cluster, kinds.DEPLOYMENTS, replicas=2)
        await cluster.until(lambda: rolled_out(cluster, 2))


async def test_a_rolling_update_keeps_its_bounds() -> None:
    async with simulation(*DEPLOYING, nodes=2) as cluster:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
        await cluster.create(workload(kinds.DEPLOYMENTS, replicas=4, strategy=rolling))
        await cluster.until(lambda: rolled_out(cluster, 4))
        counts: list[int] = []

        def finished() -> bool:
            alive = [one for one in cluster.all(kinds.PODS) if not one["metadata"].get("deletionTimestamp")]
            counts.append(len(alive))
            return rolled_out(cluster, 4)

        await change(cluster, kinds.DEPLOYMENTS, template=template("v2"))
        await cluster.until(finished)
        assert min(counts) >= 3
        assert max(counts) <= 5
        assert {one["spec"]["containers"][0]["image"] for one in cluster.all(kinds.PODS)} == {"v2"}
        numbers = {
            one["metadata"]["annotations"]["deployment.kubernetes.io/revision"]: one["spec"]["replicas"]
            for one in cluster.all(kinds.REPLICA_SETS)
        }
        assert numbers == {"1": 0, "2": 4}


async def test_a_rollback_is_the_newest_revision() -> None:
    async with simulation(*DEPLOYING, nodes=2) as cluster:
        await cluster.create(workload(kinds.DEPLOYMENTS, replicas=1))
        await cluster.until(lambda: rolled_out(cluster, 1))
        for image in ("v2", "v1"):
            await change(cluster, kinds.DEPLOYMENTS, template=template(image))
            await cluster.until(lambda: rolled_out(cluster, 1))
        found = cluster.find(kinds.DEPLOYMENTS, "web")
        assert found is not None
        assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
        assert len(cluster.all(kinds.REPLICA_SETS)) == 2


async def test_recreate_never_runs_two_versions() -> None:
    async with simulation(*DEPLOYING, nodes=2) as cluster:
        await cluster.create(workload(kinds.DEPLOYMENTS, replicas=3, strategy={"type": "Recreate"}))
        await cluster.until(lambda: rolled_out(cluster, 3))
        mixed: list[set[str]] = []

        def finished() -> bool:
            alive = [one for one in cluster.all(kinds.PODS) if not one["metadata"].get("deletionTimestamp")]
            mixed.append({one["spec"]["containers"][0]["image"] for one in alive})
            return rolled_out(cluster, 3)

        await change(cluster, kinds.DEPLOYMENTS, template=template("v2"))
        await cluster.until(finished)
        assert all(len(images) <= 1 for images in mixed)


async def test_a_paused_deployment_scales_but_does_not_roll() -> None:
    async with simulation(*DEPLOYING, nodes=2) as cluster:
        await cluster.create(workload(kinds.DEPLOYMENTS, replicas=1))
        await cluster.until(lambda: rolled_out(cluster, 1))
        await change(cluster, kinds.DEPLOYMENTS, paused=True, template=template("v2"), replicas=2)
        await cluster.until(lambda: len(cluster.all(kinds.PODS)) == 2)
        await cluster.settled()
        assert len(cluster.all(kinds.REPLICA_SETS)) == 1


async def test_old_revisions_are_forgotten() -> None:
    async with simulation(*DEPLOYING, nodes=2) as cluster:
        await cluster.create(workload(kinds.DEPLOYMENTS, replicas=1, revisionHistoryLimit=1))
        for image in ("v1", "v2", "v3"):
            await change(cluster, kinds.DEPLOYMENTS, template=template(image))
            await cluster.until(lambda: rolled_out(cluster, 1))
        await cluster.until(lambda: len(cluster.all(kinds.REPLICA_SETS)) == 2)


async def test_a_replica_set_replaces_what_goes() -> None:
    async with simulation(ReplicaSetController, DefaultScheduler, nodes=1) as cluster:
        await cluster.create(workload(kinds.REPLICA_SETS, replicas=2))
        await cluster.until(lambda: list(phases(cluster.all(kinds.PODS)).values()) == ["Running"] * 2)
        victim = cluster.all(kinds.PODS)[0]["metadata"]
        await cluster.registry.delete(kinds.PODS, "default", victim["name"])
        await cluster.until(
            lambda: victim["name"] not in phases(cluster.all(kinds.PODS)) and len(cluster.all(kinds.PODS)) == 2
        )


async def test_a_replica_set_adopts_what_it_selects() -> None:
    async with simulation(ReplicaSetController) as cluster:
        await cluster.create(pod("stray", labels={"app": "web"}))
        await cluster.create(workload(kinds.REPLICA_SETS, replicas=1))
        await cluster.until(lambda: (cluster.find(kinds.REPLICA_SETS, "web") or {})["status"].get("replicas") == 1)
        assert list(phases(cluster.all(kinds.PODS))) == ["stray"]


async def test_a_replica_set_notices_a_loss_it_did_not_see() -> None:
    async with simulation(ReplicaSetController) as cluster:
        await cluster.create(workload(kinds.REPLICA_SETS, replicas=2))
        await cluster.until(lambda: len(cluster.all(kinds.PODS)) == 2)
        await cluster.settled()
        await cluster.registry.delete(kinds.PODS, "default", cluster.all(kinds.PODS)[0]["metadata"]["name"])
        cluster.store.compact()
        await cluster.until(lambda: len(cluster.all(kinds.PODS)) == 2)


async def test_a_refused_pod_is_tried_again() -> None:
    """The quota goes away, and the ReplicaSet gets its pods after all."""
    async with simulation(ReplicaSetController) as cluster:
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q"},
            "spec": {"hard": {"pods": "1"}},
        }
        await cluster.create(quota)
        await cluster.create(workload(kinds.REPLICA_SETS, replicas=2))
        await cluster.until(lambda: len(cluster.all(kinds.PODS)) == 1)
        await cluster.registry.delete(kinds.RESOURCE_QUOTAS, "default", "q")
        await cluster.until(lambda: len(cluster.all(kinds.PODS)) == 2)


async def test_a_stateful_set_starts_in_order() -> None:
    async with simulation(StatefulSetController, DefaultScheduler, nodes=1) as cluster:
        seen: list[str] = []
        watch = cluster.store.watch(kinds.PODS)
        claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
        claims[0]["spec"]["resources"] = {"requests": {"storage": "1Gi"}}  # type: ignore[index]
        await cluster.create(workload(kinds.STATEFUL_SETS, replicas=3, serviceName="web", volumeClaimTemplates=claims))
        await cluster.until(lambda: rolled_out(cluster, 3, kinds.STATEFUL_SETS))
        running: set[str] = set()
        for event in await watch.batch():
            if event.type == "ADDED":
                assert running == set(seen), "the one before does not run yet"
                seen.append(event.stored.key.name)
            elif event.stored.object["status"]["phase"] == "Running":
                running.add(event.stored.key.name)
        assert seen == ["web-0", "web-1", "web-2"]
        assert [one["metadata"]["name"] for one in cluster.all(kinds.PERSISTENT_VOLUME_CLAIMS)] == [
            "data-web-0",
            "data-web-1",
            "data-web-2",
        ]
        first = cluster.find(kinds.PODS, "web-0")
        assert first is not None
        assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("web-0", "web")


async def test_a_stateful_set_shrinks_and_rolls_from_the_end() -> None:
    async with simulation(StatefulSetController, DefaultScheduler, nodes=1) as cluster:
        await cluster.create(workload(kinds.STATEFUL_SETS, replicas=3, serviceName="web"))
        await cluster.until(lambda: rolled_out(cluster, 3, kinds.STATEFUL_SETS))
        await change(cluster, kinds.STATEFUL_SETS, replicas=2)
        await cluster.until(lambda: rolled_out(cluster, 2, kinds.STATEFUL_SETS))
        await cluster.until(lambda: list(phases(cluster.all(kinds.PODS))) == ["web-0", "web-1"])
        watch = cluster.store.watch(kinds.PODS)
        await change(cluster, kinds.STATEFUL_SETS, template=template("v2"))
        await cluster.until(lambda: rolled_out(cluster, 2, kinds.STATEFUL_SETS))
        gone = [event.stored.key.name for event in await watch.batch() if event.type == "DELETED"]
        assert gone == ["web-1", "web-0"]


async def test_a_parallel_stateful_set_does_not_wait() -> None:
    async with simulation(StatefulSetController) as cluster:  # no nodes: nothing ever gets ready
        await cluster.create(workload(kinds.STATEFUL_SETS, replicas=3, serviceName="w", podManagementPolicy="Parallel"))
        await cluster.until(lambda: len(cluster.all(kinds.PODS)) == 3)


def job(name: str = "web", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    body = {"template": template(restartPolicy="Never", annotations=annotations), **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body}


def condition(cluster: Simulation) -> tuple[str, str]:
    """Type and reason of the condition that ends the Job."""
    status = (cluster.find(kinds.BATCH_JOBS, "web") or {}).get("status") or {}
    for one in status.get("conditions") or ():
        if one["type"] in ("Complete", "Failed"):
            return one["type"], one["reason"]
    return "", ""


@dataclass(frozen=True)
class JobCase:
    want: tuple[str, str]
    spec: Object = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    succeeded: int = 0
    failed: int = 0


JOBS = {
    "one pod": JobCase(("Complete", "CompletionsReached"), succeeded=1),
    "several in turn": JobCase(("Complete", "CompletionsReached"), {"completions": 4, "parallelism": 2}, succeeded=4),
    "indexed": JobCase(
        ("Complete", "CompletionsReached"),
        {"completions": 3, "parallelism": 3, "completionMode": "Indexed"},
        succeeded=3,
    ),
    "too many failures": JobCase(
        ("Failed", "BackoffLimitExceeded"), {"backoffLimit": 1}, {PREFIX + "exit-code": "1"}, failed=2
    ),
    "too long": JobCase(("Failed", "DeadlineExceeded"), {"activeDeadlineSeconds": 1}, {PREFIX + "run-seconds": "3600"}),
}


@pytest.mark.parametrize("case", JOBS.values(), ids=JOBS.keys())
async def test_jobs(case: JobCase) -> None:
    async with simulation(BatchJobController, DefaultScheduler, nodes=1, pods=Settings(run_seconds=0.02)) as cluster:
        await cluster.create(job(annotations=case.annotations, **case.spec))
        await cluster.until(lambda: condition(cluster) != ("", ""))
        assert condition(cluster) == case.want
        found = cluster.find(kinds.BATCH_JOBS, "web")
        assert found is not None
        status = found["status"]
        assert (status.get("succeeded", 0), status.get("failed", 0)) == (case.succeeded, case.failed)
        assert bool(status.get("completionTime")) == (case.want[0] == "Complete")
        if case.spec.get("completionMode"):
            assert status["completedIndexes"] == "0-2"
            environments = [one["spec"]["containers"][0]["env"][0] for one in cluster.all(kinds.PODS)]
            assert {one["value"] for one in environments} == {"0", "1", "2"}


async def test_a_suspended_job_runs_nothing_until_it_is_resumed() -> None:
    async with simulation(BatchJobController, DefaultScheduler, nodes=1, pods=Settings(run_seconds=0.02)) as cluster:
        await cluster.create(job(suspend=True))
        await cluster.settled()
        assert not cluster.all(kinds.PODS)
        await change(cluster, kinds.BATCH_JOBS, suspend=False)
        await cluster.until(lambda: condition(cluster)[0] == "Complete")


async def test_a_finished_job_expires() -> None:
    async with simulation(
        BatchJobController, DefaultScheduler, nodes=1, garbage=True, pods=Settings(run_seconds=0.02)
    ) as cluster:
        await cluster.create(job(ttlSecondsAfterFinished=0))
        await cluster.until(lambda: cluster.find(kinds.BATCH_JOBS, "web") is None and not cluster.all(kinds.PODS))


async def test_foreground_deletion_of_a_deployment() -> None:
    async with simulation(*DEPLOYING, nodes=1, garbage=True) as cluster:
        await cluster.create(workload(kinds.DEPLOYMENTS, replicas=2))
        await cluster.until(lambda: rolled_out(cluster, 2))
        await cluster.registry.delete(kinds.DEPLOYMENTS, "default", "web", DeleteOptions(propagation="Foreground"))
        await cluster.until(lambda: cluster.find(kinds.DEPLOYMENTS, "web") is None)
        assert not cluster.all(kinds.PODS)
        assert not cluster.all(kinds.REPLICA_SETS)


@pytest.mark.parametrize(
    ("rolling", "wanted", "want"),
    [
        ({}, 4, (1, 1)),
        ({}, 1, (1, 0)),
        ({"maxSurge": 0, "maxUnavailable": 0}, 4, (0, 1)),
        ({"maxSurge": "50%", "maxUnavailable": "50%"}, 3, (2, 1)),
        ({"maxSurge": 3, "maxUnavailable": 2}, 10, (3, 2)),
    ],
)
def test_bounds(rolling: Object, wanted: int, want: tuple[int, int]) -> None:
    assert bounds(rolling, wanted) == want


def test_the_hash_is_of_the_template_alone() -> None:
    plain, marked = template(), copy.deepcopy(template())
    marked["metadata"]["labels"][HASH_LABEL] = "x"
    assert template_hash(plain) == template_hash(marked)
    assert template_hash(plain) != template_hash(template("v2"))


@given(
    st.integers(0, 12),
    st.integers(0, 5),
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=3),
    st.tuples(st.integers(0, 12), st.integers(0, 12)),
)
def test_no_step_of_a_rollout_leaves_the_bounds(
    wanted: int, surge: int, unavailable: int, old: list[tuple[int, int]], new: tuple[int, int]
) -> None:
    """A step never asks for more than wanted and surge, nor takes available pods below the minimum."""

    def made(number: int, replicas: int, available: int) -> Object:
        annotations = {"deployment.kubernetes.io/revision": str(number)}
        status = {"replicas": replicas, "availableReplicas": min(available, replicas)}
        return {
            "metadata": {"name": str(number), "annotations": annotations},
            "spec": {"replicas": replicas},
            "status": status,
        }

    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    owner = {"spec": {"replicas": wanted, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}}
    current = made(9, *new)
    sets = [current, *(made(number, *one) for number, one in enumerate(old))]
    before = sum(one["spec"]["replicas"] for one in sets)
    surge, unavailable = bounds(rolling, wanted)
    planned = {one["metadata"]["name"]: replicas for one, replicas in plan_rollout(owner, current, sets)}
    after = sum(planned.get(one["metadata"]["name"], one["spec"]["replicas"]) for one in sets)
    assert after <= max(before, wanted + surge)
    assert all(replicas >= 0 for replicas in planned.values())
    available = sum(one["status"]["availableReplicas"] for one in sets[1:])
    left = sum(min(planned.get(one["metadata"]["name"], 99), one["status"]["availableReplicas"]) for one in sets[1:])
    ready = min(current["status"]["availableReplicas"], planned.get("9", 99))
    if left < available:
        assert left + ready >= min(wanted - unavailable, available + ready)


@given(st.sets(st.integers(0, 40)))
def test_ranges_say_every_number_once(numbers: set[int]) -> None:
    found: set[int] = set()
    for part in filter(None, ranges(numbers).split(",")):
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    assert found == numbers
