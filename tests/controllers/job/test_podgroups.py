"""The PodGroup of a job: spec 02 sections 14, 15 and 23."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from stromboli.api import quantities
from stromboli.api.core import PodGroup, from_builtins
from stromboli.controllers.job import podgroups
from tests.controllers.building import UID, JobBuilder, job

D = None
"""Left to default: all replicas."""


def on_the_wire(value: object) -> object:
    return orjson.loads(orjson.dumps(value))


def two_tasks(minimum: int, master: int | None, worker: int | None, worker_first: bool) -> JobBuilder:
    builder = job()
    for name, least, cpu in (("master", master, "50m"), ("worker", worker, "100m")):
        fields: dict[str, Any] = {} if least is None else {"minAvailable": least}
        spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
        if worker_first:
            spec["priorityClassName"] = name  # type: ignore[assignment]
        builder.task(name, 2, template={"spec": spec}, **fields)
    return builder.spec(minAvailable=minimum)


@dataclass(frozen=True)
class Case:
    minimum: int
    master: int | None
    worker: int | None
    want_cpu: str
    worker_first: bool = False


WORKED = [
    Case(2, 1, D, "100m"),
    Case(2, D, 1, "100m"),
    Case(3, D, D, "200m"),
    Case(2, 1, 1, "150m"),
    Case(3, 1, D, "250m"),
    Case(3, D, 1, "200m"),
    Case(3, 1, 1, "200m"),
    Case(3, 1, 1, "250m", worker_first=True),
    Case(3, 0, 1, "250m", worker_first=True),
    Case(4, D, 1, "300m", worker_first=True),
    Case(4, 1, 1, "300m", worker_first=True),
]


@pytest.mark.parametrize("case", WORKED, ids=str)
def test_min_resources_of_the_worked_cases(case: Case) -> None:
    model = two_tasks(case.minimum, case.master, case.worker, case.worker_first).model()
    found = podgroups.min_resources(model, {"worker": 10, "master": 5})
    pods = str(case.minimum)
    want = {"count/pods": pods, "pods": pods, "cpu": case.want_cpu, "requests.cpu": case.want_cpu}
    assert quantities.equal(found, want)


def test_a_gang_of_none_asks_for_nothing() -> None:
    model = two_tasks(0, 0, 0, False).model()
    assert podgroups.build(model, {})["spec"]["minResources"] == {}


def test_limits_and_extended_resources_are_charged() -> None:
    amounts = {"cpu": "1000m", "memory": "1000Mi", "nvidia.com/gpu": "1"}
    spec = {"containers": [{"name": "c", "resources": {"requests": amounts, "limits": amounts}}]}
    model = job().task("a", 1, template={"spec": spec}).task("b", 1, template={"spec": spec}).model()
    want = {
        "count/pods": "2", "pods": "2", "cpu": "2", "requests.cpu": "2", "limits.cpu": "2", "memory": "2000Mi",
        "requests.memory": "2000Mi", "limits.memory": "2000Mi", "nvidia.com/gpu": "2", "requests.nvidia.com/gpu": "2",
    }  # fmt: skip
    assert quantities.equal(podgroups.min_resources(model, {}), want)


@pytest.mark.parametrize(
    ("policy", "want_task", "want_groups"),
    [
        ({"totalPartitions": 2, "partitionSize": 3}, 6, 0),
        ({"totalPartitions": 2, "partitionSize": 3, "minPartitions": 1}, 3, 1),
        ({"totalPartitions": 3, "partitionSize": 2, "minPartitions": 3}, 6, 3),
    ],
)
def test_partitions_become_sub_groups(policy: dict[str, int], want_task: int, want_groups: int) -> None:
    spec = podgroups.build(job().task("task1", 6, partitionPolicy=policy).model(), {})["spec"]
    assert spec["minTaskMember"] == {"task1": want_task}
    assert on_the_wire(spec["subGroupPolicy"]) == [
        {
            "name": "task1",
            "subGroupSize": policy["partitionSize"],
            "minSubGroups": want_groups,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "task1"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
        }
    ]


def test_the_group_takes_over_the_jobs_metadata() -> None:
    group = podgroups.build(job().task("t", 1).meta(labels={"a": "b"}, annotations={"c": "d"}).model(), {})
    meta = group["metadata"]
    assert (meta["name"], meta["labels"], meta["annotations"]) == (f"job1-{UID}", {"a": "b"}, {"c": "d"})
    assert meta["ownerReferences"][0]["uid"] == UID


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (
            {"mode": "hard", "highestTierAllowed": 2, "highestTierName": "rack"},
            {"mode": "hard", "highestTierAllowed": 2},
        ),
        ({"mode": "soft", "highestTierName": "rack"}, {"mode": "soft", "highestTierName": "rack"}),
        ({"mode": "hard", "highestTierAllowed": 0}, {"mode": "hard", "highestTierAllowed": 0}),
    ],
)
def test_topology_is_copied_and_a_tier_number_wins(given: dict[str, object], want: dict[str, object]) -> None:
    assert (
        podgroups.build(job().task("t", 1).spec(networkTopology=given).model(), {})["spec"]["networkTopology"] == want
    )


def stored(builder: JobBuilder, **spec: object) -> PodGroup:
    wire = podgroups.build(builder.model(), {})
    wire["spec"].update(spec)
    return from_builtins(PodGroup, wire)


def test_a_group_that_fits_needs_no_change() -> None:
    builder = job().task("a", 4, requests={"cpu": "1000m"}, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})
    assert podgroups.changes(builder.model(), stored(builder), {}) == {}


def test_amounts_are_compared_not_texts() -> None:
    builder = job().task("a", 1, requests={"memory": "1Gi"})
    same = {"count/pods": "1", "pods": 1, "memory": "1024Mi", "requests.memory": str(2**30)}
    assert podgroups.changes(builder.model(), stored(builder, minResources=same), {}) == {}


def test_what_is_brought_up_to_date() -> None:
    old, new = (
        job().task("a", 2, requests={"cpu": "1", "nvidia.com/gpu": "1"}),
        job().task("a", 3, requests={"cpu": "1"}),
    )
    new.spec(priorityClassName="high", queue="elsewhere")
    patch = podgroups.changes(new.model(), stored(old, minTaskMember={"a": 2, "gone": 1}), {})["spec"]
    assert patch["minMember"] == 3
    assert patch["minTaskMember"] == {"a": 3}
    assert patch["priorityClassName"] == "high"
    assert patch["minResources"]["cpu"] == "3"
    assert patch["minResources"]["nvidia.com/gpu"] is None
    assert "queue" not in patch


def test_a_sub_group_of_a_task_that_is_no_longer_partitioned_goes() -> None:
    old = job().task("a", 4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})
    assert podgroups.changes(job().task("a", 4).model(), stored(old), {}) == {"spec": {"subGroupPolicy": []}}


@pytest.mark.parametrize(
    ("phase", "want"), [("", False), ("Pending", False), ("Inqueue", True), ("Running", True), ("Unknown", True)]
)
def test_the_gate(phase: str, want: bool) -> None:
    group = from_builtins(PodGroup, {"metadata": {"name": "g"}, "status": {"phase": phase}})
    assert podgroups.admitted(group) is want


TOLD: dict[str, tuple[dict[str, str], tuple[str, str] | None]] = {
    "it waits": ({"type": "Unschedulable", "status": "True"}, ("unschedulable", "100% full")),
    "it was not let in": ({"type": "Admitted", "status": "False"}, ("not admitted", "100% full")),
    "it finds no room": ({"type": "Fits", "status": "False"}, ("does not fit", "100% full")),
    "all is scheduled": ({"type": "Scheduled", "status": "True"}, None),
}


@pytest.mark.parametrize("name", TOLD)
def test_how_a_complaint_is_put(name: str) -> None:
    condition, want = TOLD[name]
    group = {"metadata": {}, "status": {"conditions": [{**condition, "message": "100% full"}]}}
    assert podgroups.complaint(from_builtins(PodGroup, group)) == want


@pytest.mark.parametrize(
    ("phase", "scheduled", "deleting", "want"),
    [
        ("Running", "2026-01-01T00:00:01Z", False, None),
        ("Completed", "2026-01-01T00:00:01Z", False, None),
        ("Unknown", "2026-01-01T00:00:01Z", False, ("unschedulable", "no room")),
        ("Running", "2026-01-01T00:00:00Z", False, ("unschedulable", "no room")),
        ("Inqueue", "2026-01-01T00:00:00Z", True, None),
    ],
)
def test_a_gang_that_was_placed_in_the_same_second_or_goes_waits_for_nothing(
    phase: str, scheduled: str, deleting: bool, want: tuple[str, str] | None
) -> None:
    waits = {"type": "Unschedulable", "status": "True", "message": "no room"}
    conditions = [
        {**waits, "lastTransitionTime": "2026-01-01T00:00:01Z"},
        {"type": "Scheduled", "status": "True", "lastTransitionTime": scheduled},
    ]
    metadata = {"deletionTimestamp": "2026-01-01T00:00:02Z"} if deleting else {}
    group = {"metadata": metadata, "status": {"phase": phase, "conditions": conditions}}
    assert podgroups.complaint(from_builtins(PodGroup, group)) == want
