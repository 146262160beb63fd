"""Changes of jobs (spec 07 section 10)."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import jsonpatch
import pytest

from stromboli.webhooks.shapes import JsonObject
from tests.webhooks.building import container, decide, job, task, template

FIXED = (
    "job updates may not change fields other than "
    "`minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`"
)
Change = Callable[[JsonObject], Any]


def stored() -> JsonObject:
    """A running job."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    return job(
        task("a", 5, minAvailable=2, template=template(containers=[container(resources=resources)])),
        task("b", 1),
        minAvailable=3,
        plugins={"env": [], "svc": ["--x"]},
        maxRetry=3,
        volumes=[{"mountPath": "/data", "volumeClaim": {"resources": {"requests": {"storage": "1Gi"}}}}],
        policies=[{"event": "PodFailed", "action": "RestartJob"}],
    )


def first_task(new: JsonObject) -> JsonObject:
    found: JsonObject = new["spec"]["tasks"][0]
    return found


def requests(new: JsonObject) -> JsonObject:
    found: JsonObject = first_task(new)["template"]["spec"]["containers"][0]["resources"]["requests"]
    return found


ACCEPTED: dict[str, Change] = {
    "nothing": lambda new: None,
    "labels": lambda new: new["metadata"].update(labels={"a": "b"}),
    "more replicas": lambda new: first_task(new).update(replicas=6),
    "fewer replicas down to what is needed": lambda new: first_task(new).update(replicas=2),
    "the least of the job": lambda new: new["spec"].update(minAvailable=1),
    "the least of a task": lambda new: first_task(new).update(minAvailable=5),
    "no least of a task": lambda new: first_task(new).pop("minAvailable"),
    "the priority class": lambda new: new["spec"].update(priorityClassName="high"),
    "the same amount written otherwise": lambda new: requests(new).update(cpu="1000m", memory="1024Mi"),
    "an empty list for none": lambda new: first_task(new).update(policies=[]),
    "an empty map for none": lambda new: first_task(new)["template"].update(metadata={"labels": {}}),
    "the claim's name, which the controller fills in": lambda new: new["spec"]["volumes"][0].update(
        volumeClaimName="made-by-the-controller"
    ),
    "a switch that is off anyway": lambda new: first_task(new)["template"]["spec"].update(hostNetwork=False),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_change_is_accepted(name: str) -> None:
    new = stored()
    ACCEPTED[name](new)
    verdict = decide("/jobs/validate", new, stored())
    assert (verdict.allowed, verdict.message) == (True, "")


REFUSED: dict[str, tuple[Change, str]] = {
    "negative replicas": (lambda new: first_task(new).update(replicas=-1), "'replicas' must be >= 0 in task: a"),
    "a negative least": (lambda new: first_task(new).update(minAvailable=-1), "'minAvailable' must be >= 0 in task: a"),
    "fewer replicas than the task needs": (
        lambda new: first_task(new).update(replicas=1),
        "'minAvailable' must be <= 'replicas' in task: a",
    ),
    "fewer replicas than the job needs": (
        lambda new: first_task(new).update(replicas=1, minAvailable=1),
        "job 'minAvailable' must not be greater than total replicas",
    ),
    "a negative least of the job": (lambda new: new["spec"].update(minAvailable=-1), "job 'minAvailable' must be >= 0"),
    "another task": (lambda new: new["spec"]["tasks"].append(task("c")), "job updates may not add or remove tasks"),
    "another image": (lambda new: first_task(new)["template"]["spec"]["containers"][0].update(image="x"), FIXED),
    "another queue": (lambda new: new["spec"].update(queue="other"), FIXED),
    "a renamed task": (lambda new: first_task(new).update(name="z"), FIXED),
    "another amount": (lambda new: requests(new).update(cpu="1001m"), FIXED),
    "a plugin less, though it had no arguments": (lambda new: new["spec"]["plugins"].pop("env"), FIXED),
    "an empty object where there was none": (lambda new: new["spec"].update(networkTopology={}), FIXED),
    "another mount": (lambda new: new["spec"]["volumes"][0].update(mountPath="/other"), FIXED),
    "retries": (lambda new: new["spec"].update(maxRetry=4), FIXED),
    "a switch that was open": (
        lambda new: first_task(new)["template"]["spec"].update(automountServiceAccountToken=False),
        FIXED,
    ),
    "tasks in another order": (lambda new: new["spec"]["tasks"].reverse(), FIXED),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_change_is_refused(name: str) -> None:
    change, want = REFUSED[name]
    new = stored()
    change(new)
    verdict = decide("/jobs/validate", new, stored())
    assert (verdict.allowed, verdict.message) == (False, want)


def test_a_refused_change_names_the_field() -> None:
    new = stored()
    new["spec"]["queue"] = "other"
    assert [error.path for error in decide("/jobs/validate", new, stored()).errors] == ["spec.queue"]


def test_a_partitioned_task_cannot_be_scaled() -> None:
    old = job(task("a", 4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2}))
    new = deepcopy(old)
    first_task(new)["replicas"] = 6
    verdict = decide("/jobs/validate", new, old)
    assert verdict.message == "'Replicas' are not equal to TotalPartitions*PartitionSize in task: a, job: sample"


def test_the_message_says_the_first_fault_and_the_causes_name_all() -> None:
    new = stored()
    first_task(new).update(replicas=-1, name="z")
    verdict = decide("/jobs/validate", new, stored())
    assert verdict.message == "'replicas' must be >= 0 in task: z"
    assert [error.path for error in verdict.errors] == [
        "spec.tasks[0].replicas",
        "spec.tasks[0].minAvailable",
        "spec.minAvailable",
        "spec.tasks",
    ]


def stored_of(manifest: JsonObject) -> JsonObject:
    """What admission makes of a manifest."""
    patched: JsonObject = jsonpatch.apply_patch(deepcopy(manifest), list(decide("/jobs/mutate", manifest).patch))
    return patched


def applied_again(manifest: JsonObject) -> JsonObject:
    """What ``kubectl apply`` makes of a stored job: lists are those of the manifest, other members stay."""
    old = stored_of(manifest)
    return {**old, "spec": {**old["spec"], "tasks": deepcopy(manifest["spec"]["tasks"])}}


def test_applying_a_manifest_twice_is_no_change_though_its_tasks_lack_what_admission_filled_in() -> None:
    manifest = job(task("master", 2), task("worker", 2), minAvailable=2, plugins={"mpi": []})
    new, old = applied_again(manifest), stored_of(manifest)
    assert new != old
    verdict = decide("/jobs/validate", new, old)
    assert (verdict.allowed, verdict.message) == (True, "")


LOSSES = {
    "the name that pods are made of": job(task("", 2)),
    "the DNS policy that pods on the host's network need": job(task(template=template(hostNetwork=True))),
}


@pytest.mark.parametrize("name", LOSSES)
def test_applying_a_manifest_twice_may_not_lose(name: str) -> None:
    manifest = LOSSES[name]
    assert decide("/jobs/validate", applied_again(manifest), stored_of(manifest)).message == FIXED


def test_replacing_a_job_by_its_manifest_may_not_lose_its_scheduler() -> None:
    manifest = job(task("a", 2))
    assert decide("/jobs/validate", manifest, stored_of(manifest)).message == FIXED
