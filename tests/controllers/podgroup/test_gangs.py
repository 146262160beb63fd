"""How big the gangs of other systems' jobs are."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.controllers.podgroup.gangs import GangSize, stepping_stone, table
from stromboli.kube.json import JsonObject


def template(cpu: str = "1") -> JsonObject:
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}


def replicas(**roles: Any) -> JsonObject:
    return {role: {"replicas": number, "template": template()} for role, number in roles.items()}


def size(api_version: str, kind: str, spec: JsonObject) -> GangSize:
    return table()[api_version, kind].size({"metadata": {"name": "x"}, "spec": spec})


def job(**spec: Any) -> JsonObject:
    return {"template": template(), **spec}


CASES: dict[str, tuple[str, str, JsonObject, int, int]] = {
    "a job of independent pods": ("batch/v1", "Job", job(parallelism=4), 1, 1),
    "an indexed job": ("batch/v1", "Job", job(parallelism=4, completionMode="Indexed"), 4, 4),
    "an indexed job with fewer completions": (
        "batch/v1", "Job", job(parallelism=4, completions=2, completionMode="Indexed"), 2, 2
    ),
    "a job that says nothing": ("batch/v1", "Job", job(completionMode="Indexed"), 1, 1),
    "a job set": (
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {
            "replicatedJobs": [
                {"name": "a", "replicas": 2, "template": {"spec": job(parallelism=3)}},
                {"name": "b", "template": {"spec": job()}},
            ]
        },
        7,
        7,
    ),
    "leader and workers": (
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"leaderWorkerTemplate": {"size": 4, "leaderTemplate": template("2"), "workerTemplate": template()}},
        4,
        5,
    ),
    "workers that lead themselves": (
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"leaderWorkerTemplate": {"size": 4, "workerTemplate": template()}},
        4,
        4,
    ),
    "pytorch": ("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas(Master=1, Worker=3)}, 4, 4),
    "pytorch that may shrink": (
        "kubeflow.org/v1",
        "PyTorchJob",
        {"pytorchReplicaSpecs": replicas(Master=1, Worker=3), "elasticPolicy": {"minReplicas": 2}},
        3,
        3,
    ),
    "tensorflow": ("kubeflow.org/v1", "TFJob", {"tfReplicaSpecs": replicas(PS=2, Worker=4, Chief=1)}, 7, 7),
    "a role that says nothing": ("kubeflow.org/v1", "XGBoostJob", {"xgbReplicaSpecs": replicas(Master=None)}, 1, 1),
    "paddle": ("kubeflow.org/v1", "PaddleJob", {"paddleReplicaSpecs": replicas(Worker=2)}, 2, 2),
    "jax": ("kubeflow.org/v1", "JAXJob", {"jaxReplicaSpecs": replicas(Worker=2)}, 2, 2),
    "mpi": ("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": replicas(Launcher=1, Worker=2)}, 3, 3),
    "mpi whose launcher waits": (
        "kubeflow.org/v2beta1",
        "MPIJob",
        {"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": replicas(Launcher=1, Worker=2)},
        2,
        2,
    ),
    "ray": (
        "ray.io/v1",
        "RayCluster",
        {
            "headGroupSpec": {"template": template("2")},
            "workerGroupSpecs": [{"replicas": 3, "numOfHosts": 2, "template": template()}, {"template": template()}],
        },
        7,
        8,
    ),
    "ray that grows by itself": (
        "ray.io/v1",
        "RayCluster",
        {
            "enableInTreeAutoscaling": True,
            "headGroupSpec": {"template": template()},
            "workerGroupSpecs": [{"replicas": 9, "minReplicas": 1, "template": template()}],
        },
        2,
        2,
    ),
    "ray with a group that sleeps": (
        "ray.io/v1",
        "RayCluster",
        {"headGroupSpec": {"template": template()}, "workerGroupSpecs": [{"replicas": 3, "suspend": True}]},
        1,
        1,
    ),
    "spark": (
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        {"driver": {"cores": 1, "memory": "1g"}, "executor": {"instances": 3, "cores": 2, "memory": "4g"}},
        1,
        7,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("version", "kind", "spec", "pods", "cpu"), CASES.values(), ids=CASES.keys())
def test_a_gang(version: str, kind: str, spec: JsonObject, pods: int, cpu: int) -> None:
    found = size(version, kind, spec)
    assert found.pods == pods
    assert found.resources is not None and found.resources["cpu"] == cpu


def test_the_policy_of_a_training_job_wins() -> None:
    spec = {
        "tfReplicaSpecs": replicas(Worker=4),
        "runPolicy": {"schedulingPolicy": {"minAvailable": 2}},
    }
    assert size("kubeflow.org/v1", "TFJob", spec) == GangSize(2)


def test_memory_of_spark_has_its_overhead() -> None:
    spec = {
        "driver": {"memory": "1g"},
        "executor": {"instances": 1, "memory": "10240m", "memoryOverhead": "1g", "coreRequest": "500m"},
    }
    found = size("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec).resources
    assert found is not None
    assert found["memory"] == (1024 + 384 + 10240 + 1024) * 1024 * 1024
    assert float(found["cpu"]) == 1.5


def test_what_leads_to_an_owner() -> None:
    assert stepping_stone("apps/v1", "StatefulSet") is not None
    assert stepping_stone("v1", "Pod") is not None
    assert stepping_stone("apps/v1", "ReplicaSet") is None
