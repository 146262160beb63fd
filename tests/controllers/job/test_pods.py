"""Pod decoration, spec 01 section 24.1 and spec 02 section 12."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.controllers.job import pods
from tests.controllers.building import CREATED, UID, JobBuilder, job


def build(builder: JobBuilder, index: int = 0, **options: bool) -> dict[str, Any]:
    model = builder.model()
    return pods.PodMaker(model, model.spec.tasks[0], **options).make(index)


def templated(**spec: object) -> dict[str, object]:
    return {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}], **spec}}


def test_names_labels_and_annotations() -> None:
    pod = build(job("test-job").task("test-task", 1).status(version=1, retryCount=2).spec(queue="q1"))
    assert pod["metadata"]["name"] == "test-job-test-task-0"
    assert pod["metadata"]["labels"] == {
        "volcano.sh/task-index": "0",
        "volcano.sh/job-name": "test-job",
        "volcano.sh/task-spec": "test-task",
        "volcano.sh/job-namespace": "default",
        "volcano.sh/queue-name": "q1",
    }
    assert pod["metadata"]["annotations"] == {
        "volcano.sh/task-index": "0",
        "volcano.sh/task-spec": "test-task",
        "volcano.sh/job-name": "test-job",
        "volcano.sh/queue-name": "q1",
        "volcano.sh/job-version": "1",
        "volcano.sh/job-retry-count": "2",
        "volcano.sh/template-uid": "test-job-test-task",
        "scheduling.k8s.io/group-name": f"test-job-{UID}",
    }


def test_the_job_is_the_only_owner() -> None:
    assert build(job().task("t", 1))["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": "job1",
            "uid": UID,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_of_the_templates_metadata_only_labels_and_annotations_survive_and_yield() -> None:
    template = templated() | {
        "metadata": {
            "name": "mine",
            "finalizers": ["f"],
            "labels": {"app": "x", "volcano.sh/job-name": "forged"},
            "annotations": {"scheduling.k8s.io/group-name": "forged", "note": "n"},
        }
    }
    meta = build(job().task("t", 1, template=template))["metadata"]
    assert "finalizers" not in meta
    assert (meta["labels"]["app"], meta["labels"]["volcano.sh/job-name"]) == ("x", "job1")
    assert meta["annotations"]["scheduling.k8s.io/group-name"] == f"job1-{UID}"
    assert meta["annotations"]["note"] == "n"


@pytest.mark.parametrize(
    ("field", "in_job", "in_template", "want"),
    [
        ("schedulerName", "job-scheduler", "template-scheduler", "template-scheduler"),
        ("schedulerName", "job-scheduler", None, "job-scheduler"),
        ("priorityClassName", "high-priority", None, "high-priority"),
        ("priorityClassName", "high-priority", "highest-priority", "highest-priority"),
        ("priorityClassName", None, None, None),
    ],
)
def test_scheduler_and_priority_come_from_the_template_else_the_job(
    field: str, in_job: str | None, in_template: str | None, want: str | None
) -> None:
    template = templated(**({field: in_template} if in_template else {}))
    builder = job().task("t", 1, template=template).spec(**({field: in_job} if in_job else {}))
    assert build(builder)["spec"].get(field) == want


@pytest.mark.parametrize(
    ("claims", "want"),
    [((("pvc-1", "/data1"), ("pvc-2", "/data2")), 2), ((("pvc-1", "/data1"), ("pvc-1", "/data1")), 1)],
    ids=["two claims", "one claim twice"],
)
def test_claims_are_mounted_in_every_container_but_not_in_init_containers(
    claims: tuple[tuple[str, str], ...], want: int
) -> None:
    volumes = [{"volumeClaimName": claim, "mountPath": path} for claim, path in claims]
    spec = build(job().task("t", 1, template=templated()).spec(volumes=volumes))["spec"]
    assert len(spec["volumes"]) == want
    assert [len(container["volumeMounts"]) for container in spec["containers"]] == [want, want]
    assert spec["initContainers"] == [{"name": "i"}]


def test_building_twice_gives_the_same_pod_and_leaves_the_job_alone() -> None:
    volumes = [{"volumeClaimName": "pvc-1", "mountPath": "/data"}]
    model = job().task("t", 2).spec(volumes=volumes).model()
    before = model.to_wire()
    first, again = (pods.PodMaker(model, model.spec.tasks[0]).make(0) for _ in range(2))
    assert first == again
    assert first["spec"]["volumes"] != pods.PodMaker(model, model.spec.tasks[0]).make(1)["spec"]["volumes"]
    assert model.to_wire() == before


@pytest.mark.parametrize(
    ("size", "index", "want"), [(1, 0, "0"), (0, 5, "0"), (3, -2, "0"), (2, 3, "1"), (5, 10, "2"), (None, 1, None)]
)
def test_partitions(size: int | None, index: int, want: str | None) -> None:
    fields: dict[str, Any] = {} if size is None else {"partitionPolicy": {"totalPartitions": 1, "partitionSize": size}}
    model = job().task("t", 1, **fields).model()
    assert pods.partition_id(model.spec.tasks[0], index) == want
    labels = pods.PodMaker(model, model.spec.tasks[0]).make(index)["metadata"]["labels"]
    assert labels.get("volcano.sh/partition-id") == want


def test_forwarding_is_written_twice() -> None:
    meta = build(job().task("t", 1), forwarded=True)["metadata"]
    assert meta["labels"]["volcano.sh/job-forwarding"] == meta["annotations"]["volcano.sh/job-forwarding"] == "true"


def test_what_is_copied_from_the_jobs_own_metadata() -> None:
    both = {"volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "60s", "volcano.sh/revocable-zone": "*"}
    budgets = {"volcano.sh/jdb-min-available": "1", "volcano.sh/jdb-max-unavailable": "2", "other": "x"}
    builder = job().task("t", 1, topologyPolicy="restricted")
    meta = build(builder.meta(annotations={**both, **budgets}, labels=both, creationTimestamp=CREATED))["metadata"]
    notes, labels = meta["annotations"], meta["labels"]
    assert isinstance(notes, dict)
    assert isinstance(labels, dict)
    assert both.items() <= notes.items()
    assert notes["volcano.sh/jdb-min-available"] == "1"
    assert notes["volcano.sh/numa-topology-policy"] == "restricted"
    assert notes.keys().isdisjoint({"volcano.sh/jdb-max-unavailable", "other"})
    assert labels["volcano.sh/preemptable"] == "true"
    assert "volcano.sh/revocable-zone" not in labels


def test_unknown_fields_of_the_template_reach_the_pod() -> None:
    spec = build(job().task("t", 1, template=templated(brandNewField={"deep": [1]})))["spec"]
    assert spec["brandNewField"] == {"deep": [1]}
