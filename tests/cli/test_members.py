"""The pods and the PodGroup that a rehearsal assumes for a vcjob are those that its controller makes."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import core, names
from stromboli.api.batch import Job
from stromboli.cli.rehearsing import members
from stromboli.controllers.job import podgroups, pods
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core import amounts
from stromboli.testing.builders import priority_class

PRIORITIES = [priority_class("high", 100), priority_class("low", -5), priority_class("usual", 7, default=True)]
VALUES = {item.name: item.value for item in PRIORITIES}
UNREAD = (names.JOB_VERSION, names.JOB_RETRY_COUNT)
"""Annotations of pods that scheduling does not read."""

quantity = st.sampled_from(["100m", "1", "2500m", "3"])
class_name = st.sampled_from(["", "high", "low"])
topology = st.sampled_from([{"mode": "hard", "highestTierAllowed": 2}, {"mode": "soft"}])


@st.composite
def tasks(draw: st.DrawFn, name: str) -> JsonObject:
    """A task with all that decides about its pods' gang."""
    replicas = draw(st.integers(0, 4))
    container = {"name": "c", "resources": {"requests": {"cpu": draw(quantity), "memory": "1Gi"}}}
    spec: JsonObject = {"containers": [container], "nodeSelector": {"zone": "a"}}
    if draw(st.booleans()):
        spec["priorityClassName"] = draw(class_name)
    task: JsonObject = {
        "name": name,
        "replicas": replicas,
        "template": {"metadata": {"labels": {"app": "x"}, "annotations": {"a": "b"}}, "spec": spec},
    }
    if draw(st.booleans()):
        task["minAvailable"] = draw(st.integers(0, replicas))
    if draw(st.booleans()):
        task["partitionPolicy"] = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": draw(st.integers(0, 2))}
        if draw(st.booleans()):
            task["partitionPolicy"]["networkTopology"] = draw(topology)
    return task


@st.composite
def jobs(draw: st.DrawFn) -> JsonObject:
    """A vcjob as admission leaves it."""
    made = [draw(tasks(name)) for name in ("master", "worker")[: draw(st.integers(1, 2))]]
    job: JsonObject = {
        "metadata": {
            "name": "j",
            "namespace": "ns",
            "uid": "u",
            "labels": {"team": "a"},
            "annotations": draw(st.sampled_from([{}, {names.PREEMPTABLE: "true"}, {names.JDB_MIN_AVAILABLE: "1"}])),
        },
        "spec": {
            "queue": "q",
            "schedulerName": "volcano",
            "minAvailable": draw(st.integers(0, sum(task["replicas"] for task in made))),
            "tasks": made,
        },
    }
    if draw(st.booleans()):
        job["spec"]["priorityClassName"] = draw(class_name)
    if draw(st.booleans()):
        job["spec"]["networkTopology"] = draw(topology)
    return job


def made_by_controller(job: JsonObject) -> list[core.Pod]:
    model = Job.model_validate(job)
    return [
        core.from_builtins(core.Pod, pods.PodMaker(model, task).make(index))
        for task in model.spec.tasks
        for index in range(task.replicas)
    ]


def read_by_scheduler(pod: core.Pod) -> dict[str, Any]:
    """What scheduling reads of a pod, the priority that admission adds left out."""
    notes = {key: value for key, value in pod.metadata.annotations.items() if key not in UNREAD}
    spec = msgspec.structs.replace(pod.spec, priority=None)
    return {"name": pod.name, "labels": pod.metadata.labels, "annotations": notes, "spec": core.to_builtins(spec)}


@given(jobs())
def test_pods_are_those_of_the_controller(job: JsonObject) -> None:
    ours = [read_by_scheduler(pod) for pod in members.pods(job, PRIORITIES)]
    assert ours == [read_by_scheduler(pod) for pod in made_by_controller(job)]


@given(jobs())
def test_the_pod_group_is_that_of_the_controller(job: JsonObject) -> None:
    theirs = core.from_builtins(core.PodGroup, podgroups.build(Job.model_validate(job), VALUES))
    ours = members.pod_group(job, PRIORITIES, 0.0)
    assert (ours.key, ours.metadata.annotations) == (theirs.key, theirs.metadata.annotations)
    without = {"min_resources": None}
    assert msgspec.structs.replace(ours.spec, **without) == msgspec.structs.replace(theirs.spec, **without)
    assert counted(ours) == counted(theirs)


def counted(group: core.PodGroup) -> dict[str, float]:
    """What is counted of the group's minimum: quota names (``requests.cpu``, ``count/pods``) are not."""
    found = amounts.read(group.spec.min_resources or {})
    return {name: amount for name, amount in found.items() if amount and "." not in name and "/" not in name}


@given(jobs())
def test_priorities_are_those_that_admission_gives(job: JsonObject) -> None:
    for pod in members.pods(job, PRIORITIES):
        assert pod.spec.priority == VALUES.get(pod.spec.priority_class_name, VALUES["usual"])
