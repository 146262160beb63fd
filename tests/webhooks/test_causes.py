"""All faults of an object at once, each at its place: ``status.details.causes`` names also what messages leave out.

Messages are fixed: most end at the first fault of a kind. Causes are for programs and for those who correct everything
in one go.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.webhooks.errors import MAX_CAUSES, MAX_FAULTS, causes
from stromboli.webhooks.shapes import JsonObject
from tests.webhooks.building import cluster, container, decide, job, queue, task, template


@dataclass(frozen=True)
class Case:
    path: str
    obj: JsonObject
    want_places: list[str]
    want_message: str
    old: JsonObject | None = None


def flow(name: str, *targets: str) -> JsonObject:
    return {"name": name, "dependsOn": {"targets": list(targets)}}


MUCH = {"cpu": 9, "memory": 9}
BOTH_TIERS = {"highestTierAllowed": 1, "highestTierName": "rack"}
CASES = {
    "every bad policy, although the text ends at the first": Case(
        "/jobs/validate",
        job(policies=[{"action": "A"}, {"event": "PodFailed", "action": "AbortJob"}, {"exitCode": 0}, {"event": "X"}]),
        ["spec.policies[0]", "spec.policies[2]", "spec.policies[3]"],
        "either event and exitCode should be specified",
    ),
    "every bad policy of every task": Case(
        "/jobs/validate",
        job(task("a", policies=[{"event": "PodFailed"}]), task("b", policies=[{}, {"exitCode": 0}])),
        ["spec.tasks[0].policies[0]", "spec.tasks[1].policies[0]", "spec.tasks[1].policies[1]"],
        "invalid policy action",
    ),
    "every bad volume": Case(
        "/jobs/validate",
        job(volumes=[{"mountPath": "/a"}, {"mountPath": "/b", "volumeClaimName": "b"}, {"volumeClaimName": "c"}]),
        ["spec.volumes[0]", "spec.volumes[2]"],
        "either VolumeClaim or VolumeClaimName must be specified",
    ),
    "tasks behind a repeated name": Case(
        "/jobs/validate",
        job(task("a"), task("a"), task("b", 1, minAvailable=2), task("a"), minAvailable=1),
        ["spec.tasks[1].name", "spec.tasks[2].minAvailable", "spec.tasks[3].name"],
        "duplicated task name a;",
    ),
    "everything else beside a missing mpi master": Case(
        "/jobs/validate",
        job(plugins={"mpi": [], "nfs": []}, queue="nowhere"),
        ["spec.plugins.mpi", "spec.plugins.nfs", "spec.queue"],
        "The specified mpi master task was not found",
    ),
    "the dependencies that do not exist": Case(
        "/jobs/validate",
        job(task("a"), task("b", dependsOn={"name": ["a", "x"]}), task("c", dependsOn={"name": ["y"]})),
        ["spec.tasks", "spec.tasks[1].dependsOn.name[1]", "spec.tasks[2].dependsOn.name[0]"],
        "doesn't form a directed acyclic graph",
    ),
    "every fault of every template": Case(
        "/jobs/validate",
        job(task("a", template=template(containers=[{}])), task("b", template=template(restartPolicy="No"))),
        [
            "spec.tasks[0].template.spec.containers[0].name",
            "spec.tasks[0].template.spec.containers[0].image",
            "spec.tasks[1].template.spec.restartPolicy",
        ],
        "Required value",
    ),
    "every change that is not allowed": Case(
        "/jobs/validate",
        job(queue="q", plugins={"env": []}, minAvailable=9),
        ["spec.minAvailable", "spec.plugins", "spec.queue"],
        "job 'minAvailable' must not be greater than total replicas",
        old=job(),
    ),
    "amounts, parent and shares of a queue together": Case(
        "/queues/validate",
        queue("new", parent="new", capability={"cpu": "-1"}, deserved={"memory": "-1"}),
        ["spec.capability.cpu", "spec.deserved.memory", "spec.parent", "spec.parent"],
        "requestBody.spec.capability.cpu",
    ),
    "every share that is above the parent's": Case(
        "/queues/validate",
        queue("new", parent="top", capability=MUCH, deserved={"cpu": 9}, guarantee={"resource": {"cpu": 9}}),
        ["spec.capability.cpu", "spec.capability.memory", "spec.guarantee", "spec.deserved"],
        "exceeds its ancestor's capability",
    ),
    "every sub-group with two ways to say its tier": Case(
        "/podgroups/validate",
        {"spec": {"subGroupPolicy": [{"name": name, "networkTopology": BOTH_TIERS} for name in "ab"]}},
        ["spec.subGroupPolicy[0].networkTopology", "spec.subGroupPolicy[1].networkTopology"],
        "in subGroupPolicy 'a'",
    ),
    "every target that is no flow": Case(
        "/jobflows/validate",
        {"spec": {"flows": [flow("a", "x"), flow("b", "a", "y")]}},
        ["spec.flows[0].dependsOn.targets[0]", "spec.flows[1].dependsOn.targets[1]"],
        "vertex is not defined: x",
    ),
    "every flow of a circle": Case(
        "/jobflows/validate",
        {"spec": {"flows": [flow("a", "c"), flow("b"), flow("c", "a")]}},
        ["spec.flows[0].dependsOn.targets", "spec.flows[2].dependsOn.targets"],
        "jobflow Flow is not DAG",
    ),
    "schedule, zone and name of a cron job": Case(
        "/cronjobs/validate",
        {"metadata": {"name": "n" * 53}, "spec": {"schedule": "soon", "timeZone": "Local"}},
        ["spec.schedule", "spec.timeZone", "metadata.name"],
        "schedule is not a valid cron expression",
    ),
    "every pattern that does not compile": Case(
        "/hypernodes/validate",
        {"spec": {"members": [{"selector": {"regexMatch": {"pattern": text}}} for text in ("a(", "b", "c[")]}},
        ["spec.members[0].selector.regexMatch.pattern", "spec.members[2].selector.regexMatch.pattern"],
        "missing closing",
    ),
    "the state of a queue, which messages place in its spec": Case(
        "/queues/validate", queue("q", state="Wrong"), ["status.state"], "requestBody.spec.state"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_causes_name_every_fault_at_its_place(name: str) -> None:
    case = CASES[name]
    known = cluster(queue("top", capability={"cpu": 1, "memory": 1}))
    verdict = decide(case.path, case.obj, case.old, known=known)
    assert not verdict.allowed
    assert sorted(cause["field"] for cause in causes(verdict.errors)) == sorted(case.want_places)
    assert case.want_message in verdict.message
    assert all(cause["message"] for cause in causes(verdict.errors))


def test_the_message_is_that_of_what_is_said() -> None:
    verdict = decide("/jobs/validate", job(volumes=[{"mountPath": "/a"}, {"mountPath": "/b"}]))
    assert verdict.message == "either VolumeClaim or VolumeClaimName must be specified;"
    assert [error.said for error in verdict.errors] == [True, False]


def test_an_object_full_of_faults_is_not_searched_to_its_end() -> None:
    containers = [container(f"c{number}", image="") for number in range(2 * MAX_FAULTS)]
    verdict = decide("/jobs/validate", job(task(template=template(containers=containers))))
    assert len(verdict.errors) == MAX_FAULTS
    assert len(causes(verdict.errors)) == MAX_CAUSES


def test_a_job_of_more_tasks_than_can_be_stored_is_neither_completed_nor_judged() -> None:
    many = job(*[task(f"t{number}") for number in range(10_001)])
    many["spec"]["tasks"] = [{"name": item["name"]} for item in many["spec"]["tasks"]]
    assert decide("/jobs/mutate", many).patch == []
    verdict = decide("/jobs/validate", many)
    assert verdict.message == "too many tasks: 10001, must have at most 10000 items"
