"""What the generated schemas accept, refuse and fill in: the facts of spec 01 section 24.4.

Refusals are tested with a JSON Schema validator. Defaults and CEL rules are the API server's work; they are read off.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema_rs
import pytest

from stromboli.api import crds, schemas
from stromboli.api.scheduling import Queue

Json = dict[str, Any]


@cache
def schema(kind: str) -> Json:
    (definition,) = (item for item in crds.DEFINITIONS if item.resource.KIND.kind == kind)
    return schemas.schema_of(definition.resource, descriptions=False)


@cache
def validator(kind: str) -> Any:
    return jsonschema_rs.validator_for(schema(kind))


def at(kind: str, path: str) -> Json:
    found = schema(kind)
    for step in path.split("."):
        found = found["items"] if step == "[]" else found["properties"][step]
    return found


def job(**spec: object) -> Json:
    return {"spec": spec}


def task(**fields: object) -> Json:
    return job(tasks=[{"name": "t", **fields}])


def member(selector: object) -> Json:
    return {"spec": {"tier": 1, "members": [{"type": "Node", "selector": selector}]}}


FACTS: dict[str, tuple[str, Json, bool]] = {
    "a job without spec": ("Job", {}, True),
    "a job without tasks": ("Job", job(), True),
    "a job with an empty list of tasks": ("Job", job(tasks=[]), False),
    "success of no pods": ("Job", job(minSuccess=0), False),
    "deleted at once": ("Job", job(ttlSecondsAfterFinished=0), True),
    "a policy for an event that users may not name": ("Job", job(policies=[{"event": "PodRunning"}]), True),
    "a policy for an event that there is not": ("Job", job(policies=[{"event": "PodSneezed"}]), False),
    "a policy with an unknown action": ("Job", job(policies=[{"event": "*", "action": "Foo"}]), True),
    "an unknown field of a pod": ("Job", task(template={"spec": {"containers": [], "priorityClass": "x"}}), True),
    "a template without containers": ("Job", task(template={"spec": {}}), False),
    "a container without image": ("Job", task(template={"spec": {"containers": [{"name": "c"}]}}), True),
    "a container without name": ("Job", task(template={"spec": {"containers": [{}]}}), False),
    "negative replicas": ("Job", task(replicas=-1), False),
    "a task name that is no label": ("Job", task(name="a.b"), False),
    "unlimited task retries": ("Job", task(maxRetry=-1), False),
    "an unknown NUMA policy": ("Job", task(topologyPolicy="strict"), False),
    "both tier limits": ("Job", job(networkTopology={"highestTierAllowed": 1, "highestTierName": "x"}), True),
    "tier 0": ("Job", job(networkTopology={"highestTierAllowed": 0}), True),
    "an unknown topology mode": ("Job", job(networkTopology={"mode": "medium"}), False),
    "a mount path with a colon": ("Job", job(volumes=[{"mountPath": "/a:b"}]), False),
    "a partition policy without sizes": ("Job", task(partitionPolicy={}), False),
    "a queue weight out of range": ("Queue", {"spec": {"weight": 70000}}, False),
    "a queue weight of 0": ("Queue", {"spec": {"weight": 0}}, False),
    "an unknown dequeue strategy": ("Queue", {"spec": {"dequeueStrategy": "lifo"}}, False),
    "quantities as numbers and text": ("Queue", {"spec": {"capability": {"cpu": 4, "memory": "8Gi"}}}, True),
    "a PodGroup with a phase": ("PodGroup", {"status": {"phase": "Inqueue"}}, True),
    "a PodGroup with an unknown phase": ("PodGroup", {"status": {"phase": "Lost"}}, False),
    "a sub-group of none": ("PodGroup", {"spec": {"subGroupPolicy": [{"subGroupSize": 0}]}}, False),
    "a member without selector": ("HyperNode", {"spec": {"tier": 1, "members": [{"type": "Node"}]}}, True),
    "a member without type": ("HyperNode", {"spec": {"tier": 1, "members": [{}]}}, False),
    "a member of no name": ("HyperNode", member({"exactMatch": {"name": ""}}), False),
    "a HyperNode without tier": ("HyperNode", {"spec": {}}, False),
    "a CronJob without schedule": ("CronJob", {"spec": {"jobTemplate": {}}}, False),
    "a CronJob without template": ("CronJob", {"spec": {"schedule": "* * * * *"}}, False),
    "a step of no name": ("JobFlow", {"spec": {"flows": [{"name": ""}]}}, False),
    "a shard without nodes": ("NodeShard", {"spec": {}}, False),
    "a shard without spec": ("NodeShard", {}, False),
    "a command without target": ("Command", {"action": "AbortJob"}, True),
    "a command whose target has no UID": (
        "Command",
        {"target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j"}},
        False,
    ),
    "a memory ratio above a hundred": ("ColocationConfiguration", {"spec": {"memoryQos": {"highRatio": 101}}}, False),
}


@pytest.mark.parametrize("name", FACTS)
def test_the_schema_accepts(name: str) -> None:
    kind, wire, want = FACTS[name]
    assert validator(kind).is_valid(wire) is want


DEFAULTS: dict[tuple[str, str], object] = {
    ("Job", "spec.queue"): "default",
    ("Job", "spec.maxRetry"): 3,
    ("Job", "spec.networkTopology.mode"): "hard",
    ("Job", "spec.tasks.[].partitionPolicy.minPartitions"): 0,
    ("Job", "spec.tasks.[].template.spec.containers.[].ports.[].protocol"): "TCP",
    ("CronJob", "spec.concurrencyPolicy"): "Allow",
    ("CronJob", "spec.suspend"): False,
    ("CronJob", "spec.jobTemplate.spec.queue"): "default",
    ("JobFlow", "spec.flows.[].patch.jobSpec.queue"): "default",
    ("JobFlow", "spec.flows.[].patch.jobSpec.maxRetry"): 3,
    ("PodGroup", "spec.queue"): "default",
    ("PodGroup", "spec.subGroupPolicy.[].subGroupSize"): 1,
    ("Queue", "spec.weight"): 1,
    ("Queue", "spec.dequeueStrategy"): "traverse",
    ("ColocationConfiguration", "spec.memoryQos.highRatio"): 100,
    ("ColocationConfiguration", "spec.memoryQos.lowRatio"): 0,
    ("ColocationConfiguration", "spec.memoryQos.minRatio"): 0,
}


@pytest.mark.parametrize(("kind", "path"), DEFAULTS)
def test_the_api_server_fills_in(kind: str, path: str) -> None:
    assert at(kind, path)["default"] == DEFAULTS[kind, path]


@pytest.mark.parametrize(("kind", "path"), [("Job", "spec.tasks.[].replicas"), ("Job", "spec.minAvailable")])
def test_the_api_server_does_not_fill_in(kind: str, path: str) -> None:
    assert "default" not in at(kind, path)


def test_member_selectors_need_exactly_one_way_by_cel() -> None:
    rules = at("HyperNode", "spec.members.[].selector")["x-kubernetes-validations"]
    assert [rule["message"] for rule in rules] == [
        "Either ExactMatch or RegexMatch or LabelMatch must be specified",
        "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
    ]


def test_what_is_not_in_the_vocabulary_has_no_schema() -> None:
    class Odd(Queue):
        when: complex = 0j

    with pytest.raises(TypeError, match="no schema for <class 'complex'>"):
        schemas.schema_of(Odd, descriptions=False)
