"""Patches of steps are applied to templates: spec 03 section 5.6."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.controllers.jobflow.patching import patched
from stromboli.kube.json import JsonObject

TEMPLATE: JsonObject = {
    "schedulerName": "volcano",
    "queue": "q1",
    "maxRetry": 5,
    "minAvailable": 2,
    "policies": [{"event": "PodFailed", "action": "RestartJob"}],
    "plugins": {"env": [], "svc": ["--x"]},
    "volumes": [{"mountPath": "/data", "volumeClaimName": "one"}],
    "tasks": [
        {
            "name": "main",
            "replicas": 2,
            "template": {
                "metadata": {"labels": {"a": "1"}},
                "spec": {
                    "restartPolicy": "Never",
                    "nodeSelector": {"zone": "z1"},
                    "containers": [
                        {
                            "name": "c",
                            "image": "old",
                            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                            "ports": [{"containerPort": 80, "name": "web"}],
                            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                        },
                        {"name": "side", "image": "s"},
                    ],
                    "volumes": [{"name": "v", "emptyDir": {}}],
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                },
            },
        },
        {"name": "other", "replicas": 1},
    ],
}


def pod(**spec: Any) -> JsonObject:
    return {"tasks": [{"name": "main", "template": {"spec": spec}}]}


def container(**fields: Any) -> JsonObject:
    return pod(containers=[{"name": "c", **fields}])


def at(found: JsonObject, path: str) -> Any:
    value: Any = found
    for part in path.split("."):
        value = value[int(part)] if part.isdecimal() else value[part]
    return value


SPEC = "tasks.0.template.spec"
CASES: dict[str, tuple[JsonObject, str, object]] = {
    "a scalar": ({"minAvailable": 1}, "minAvailable", 1),
    "a queue": ({"queue": "q2"}, "queue", "q2"),
    "the queue that the server fills in": ({"queue": "default"}, "queue", "q1"),
    "the retries that the server fills in": ({"maxRetry": 3}, "maxRetry", 5),
    "retries": ({"maxRetry": 0}, "maxRetry", 0),
    "a field that was not there": ({"ttlSecondsAfterFinished": 9}, "ttlSecondsAfterFinished", 9),
    "policies as a whole": ({"policies": [{"event": "*", "action": "AbortJob"}]}, "policies.0.action", "AbortJob"),
    "plugins by key": ({"plugins": {"svc": [], "ssh": []}}, "plugins", {"env": [], "svc": [], "ssh": []}),
    "job volumes by mount path": (
        {"volumes": [{"mountPath": "/data", "volumeClaimName": "two"}, {"mountPath": "/more"}]},
        "volumes",
        [{"mountPath": "/data", "volumeClaimName": "two"}, {"mountPath": "/more"}],
    ),
    "a task's number": ({"tasks": [{"name": "main", "replicas": 7}]}, "tasks.0.replicas", 7),
    "the other task stays": ({"tasks": [{"name": "main", "replicas": 7}]}, "tasks.1", {"name": "other", "replicas": 1}),
    "one more task": ({"tasks": [{"name": "new", "replicas": 1}]}, "tasks.2.name", "new"),
    "labels of pods": (
        {"tasks": [{"name": "main", "template": {"metadata": {"labels": {"b": "2"}}}}]},
        "tasks.0.template.metadata.labels",
        {"a": "1", "b": "2"},
    ),
    "restart policy": (pod(restartPolicy="OnFailure"), f"{SPEC}.restartPolicy", "OnFailure"),
    "node selector as a whole": (pod(nodeSelector={"disk": "ssd"}), f"{SPEC}.nodeSelector", {"disk": "ssd"}),
    "pod volumes by name": (
        pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "w"}]),
        f"{SPEC}.volumes",
        [{"name": "v", "hostPath": {"path": "/"}}, {"name": "w"}],
    ),
    "tolerations by key": (
        pod(tolerations=[{"key": "k", "operator": "Equal", "value": "x"}, {"key": "l"}]),
        f"{SPEC}.tolerations",
        [{"key": "k", "operator": "Equal", "value": "x"}, {"key": "l"}],
    ),
    "image": (container(image="new"), f"{SPEC}.containers.0.image", "new"),
    "the other container stays": (container(image="new"), f"{SPEC}.containers.1", {"name": "side", "image": "s"}),
    "environment by name": (
        container(env=[{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]),
        f"{SPEC}.containers.0.env",
        [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}],
    ),
    "ports by number": (
        container(ports=[{"containerPort": 80, "name": "http"}]),
        f"{SPEC}.containers.0.ports",
        [{"containerPort": 80, "name": "http"}],
    ),
    "mounts by path": (
        container(volumeMounts=[{"name": "w", "mountPath": "/w"}]),
        f"{SPEC}.containers.0.volumeMounts",
        [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}],
    ),
    "resources by name": (
        container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}),
        f"{SPEC}.containers.0.resources",
        {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "4"}},
    ),
    "command": (container(command=["sh"]), f"{SPEC}.containers.0.command", ["sh"]),
}


@pytest.mark.parametrize(("patch", "path", "want"), CASES.values(), ids=CASES.keys())
def test_a_patch(patch: JsonObject, path: str, want: object) -> None:
    assert at(patched(TEMPLATE, patch), path) == want


@pytest.mark.parametrize(("patch", "path", "want"), CASES.values(), ids=CASES.keys())
def test_template_and_patch_stay_as_they_are(patch: JsonObject, path: str, want: object) -> None:
    template, wishes = copy.deepcopy(TEMPLATE), copy.deepcopy(patch)
    result = patched(template, wishes)
    result["tasks"].clear()
    result.get("plugins", {}).clear()
    assert (template, wishes) == (TEMPLATE, patch)


@pytest.mark.parametrize("patch", [None, {}, {"queue": "default", "maxRetry": 3}, {"tasks": []}])
def test_no_patch(patch: JsonObject | None) -> None:
    assert patched(TEMPLATE, patch) == TEMPLATE


@given(st.sampled_from(sorted(CASES)), st.sampled_from(sorted(CASES)))
def test_patching_twice_is_patching_once(one: str, other: str) -> None:
    patch = patched(CASES[one][0], CASES[other][0])
    once = patched(TEMPLATE, patch)
    assert patched(once, patch) == once
