"""Pods know their colocation configuration: spec 03 section 11."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stromboli.api import core, kinds, names
from stromboli.api.core import Pod
from stromboli.controllers.colocation import choosing
from stromboli.controllers.colocation.controller import ColocationController
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from tests.controllers.stage import Stage, stage

TEXT, NAME = names.COLOCATION_CONFIG, names.COLOCATION_CONFIG_NAME
EVERYTHING: JsonObject = {}
QOS = {"highRatio": 80, "lowRatio": 0, "minRatio": 0}
DAY = "2026-06-{:02}T00:00:00Z"


def configuration(name: str, selector: JsonObject | None, *, day: int = 1, **qos: int) -> JsonObject:
    spec: JsonObject = {"memoryQos": qos or QOS}
    if selector is not None:
        spec["selector"] = selector
    return {"metadata": {"name": name, "namespace": "default", "creationTimestamp": DAY.format(day)}, "spec": spec}


def labels(**wanted: str) -> JsonObject:
    return {"matchLabels": wanted}


def pod_object(name: str = "p", *, annotations: dict[str, str] | None = None, **wanted: str) -> JsonObject:
    meta = {"name": name, "namespace": "default", "labels": wanted, "annotations": annotations or {}}
    return {"metadata": meta, "spec": {"containers": [{"name": "c"}]}}


def pod(**given: Any) -> Pod:
    return core.from_builtins(Pod, pod_object(**given))


CHOICES: dict[str, tuple[list[JsonObject], dict[str, str], str | None]] = {
    "none": ([], {}, None),
    "no selector": ([configuration("a", None)], {}, None),
    "an empty selector": ([configuration("a", EVERYTHING)], {}, "a"),
    "labels": ([configuration("a", labels(app="x"))], {"app": "x"}, "a"),
    "other labels": ([configuration("a", labels(app="x"))], {"app": "y"}, None),
    "the newest": ([configuration("a", EVERYTHING), configuration("b", EVERYTHING, day=2)], {}, "b"),
    "equally new: by name": ([configuration("b", EVERYTHING), configuration("a", EVERYTHING)], {}, "a"),
    "the newest that fits": (
        [configuration("a", EVERYTHING), configuration("b", labels(app="x"), day=2)], {"app": "y"}, "a"
    ),
    "a bad selector is skipped": (
        [
            configuration("a", {"matchExpressions": [{"key": "app", "operator": "Resembles"}]}, day=2),
            configuration("b", EVERYTHING),
        ],
        {},
        "b",
    ),
    "a selector of another shape is skipped": (
        [configuration("a", {"matchLabels": ["x"]}, day=2), configuration("b", EVERYTHING)], {}, "b"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "wanted", "name"), CHOICES.values(), ids=CHOICES.keys())
def test_which_configuration(given: list[JsonObject], wanted: dict[str, str], name: str | None) -> None:
    found = choosing.choose(given, wanted)
    assert (None if found is None else json.key_of(found)[1]) == name


def test_what_the_node_agent_reads() -> None:
    assert choosing.text_of(configuration("a", EVERYTHING, highRatio=100, lowRatio=0, minRatio=0)) == (
        '{"memoryQos":{"highRatio":100}}'
    )
    assert choosing.text_of(configuration("a", EVERYTHING, highRatio=0)) == '{"memoryQos":{}}'


RIGHT = {TEXT: '{"memoryQos":{"highRatio":80}}', NAME: "a"}
CHANGES: dict[str, tuple[dict[str, str], JsonObject | None, dict[str, str | None]]] = {
    "never managed, nothing fits": ({}, None, {}),
    "a match": ({}, configuration("a", EVERYTHING), dict(RIGHT)),
    "already right": (RIGHT, configuration("a", EVERYTHING), {}),
    "right in other words": (
        {TEXT: '{ "memoryQos": {"highRatio": 80} }', NAME: "a"}, configuration("a", EVERYTHING), {}
    ),
    "another name": ({**RIGHT, NAME: "b"}, configuration("a", EVERYTHING), {NAME: "a"}),
    "other numbers": ({**RIGHT, TEXT: "{}"}, configuration("a", EVERYTHING), {TEXT: RIGHT[TEXT]}),
    "garbage": ({**RIGHT, TEXT: "{"}, configuration("a", EVERYTHING), {TEXT: RIGHT[TEXT]}),
    "nothing fits any more": (RIGHT, None, {TEXT: "{}", NAME: None}),
    "already put back": ({TEXT: "{}"}, None, {}),
    "only the name is left": ({NAME: "a"}, None, {TEXT: "{}", NAME: None}),
}  # fmt: skip


@pytest.mark.parametrize(("present", "fits", "want"), CHANGES.values(), ids=CHANGES.keys())
def test_what_is_written(present: dict[str, str], fits: JsonObject | None, want: dict[str, str | None]) -> None:
    assert choosing.changes(pod(annotations=present), fits) == want


# -- at work -----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def colocation() -> AsyncIterator[Stage]:
    async with stage(start=False) as scene:
        await scene.run(lambda informers: ColocationController(scene.client, informers, delay=0.01))
        yield scene


def told(scene: Stage, name: str = "p") -> dict[str, str]:
    notes = json.metadata(scene.server.get(kinds.PODS, name, "default")).get("annotations") or {}
    return {key: value for key, value in notes.items() if key in (TEXT, NAME)}


@pytest.mark.parametrize("pod_first", [True, False])
async def test_pods_and_configurations_may_come_in_any_order(pod_first: bool) -> None:
    async with colocation() as scene:
        steps: list[Callable[[], object]] = [
            lambda: scene.server.put(kinds.PODS, pod_object(app="x")),
            lambda: scene.server.put(kinds.COLOCATION_CONFIGURATIONS, configuration("a", labels(app="x"))),
        ]
        for step in steps if pod_first else reversed(steps):
            step()
        await scene.until(lambda: told(scene) == RIGHT)


async def test_a_life() -> None:
    async with colocation() as scene:
        scene.server.put(kinds.PODS, pod_object(app="x"))
        scene.server.put(kinds.PODS, pod_object("other", app="y"))
        scene.server.put(kinds.COLOCATION_CONFIGURATIONS, configuration("a", labels(app="x")))
        await scene.until(lambda: told(scene) == RIGHT)
        scene.server.put(kinds.COLOCATION_CONFIGURATIONS, configuration("a", labels(app="y")))
        await scene.until(lambda: (told(scene), told(scene, "other")) == ({TEXT: "{}"}, RIGHT))
        scene.server.remove(kinds.COLOCATION_CONFIGURATIONS, "a", "default")
        await scene.until(lambda: told(scene, "other") == {TEXT: "{}"})


async def test_labels_that_change_and_annotations_that_somebody_removes() -> None:
    async with colocation() as scene:
        scene.server.put(kinds.COLOCATION_CONFIGURATIONS, configuration("a", labels(app="x")))
        scene.server.put(kinds.PODS, pod_object(app="y"))
        scene.server.put(kinds.PODS, pod_object(app="x"))
        await scene.until(lambda: told(scene) == RIGHT)
        scene.server.put(kinds.PODS, pod_object(app="x"))
        await scene.until(lambda: told(scene) == RIGHT)


async def test_only_the_two_annotations_are_written_and_conflicts_do_no_harm() -> None:
    """Defect 25 of spec 03 section 13: the whole pod was written, and conflicted with everybody."""
    async with colocation() as scene:
        fault = scene.server.faults.fail(409, verb="patch", kind=kinds.PODS, reason="Conflict")
        scene.server.put(kinds.PODS, pod_object(app="x", annotations={"theirs": "x"}))
        scene.server.put(kinds.COLOCATION_CONFIGURATIONS, configuration("a", EVERYTHING))
        await scene.until(lambda: told(scene) == RIGHT)
        assert fault.hits == 1
        assert scene.server.get(kinds.PODS, "p", "default")["metadata"]["annotations"]["theirs"] == "x"
        assert scene.server.count("update", kinds.PODS) == 0


async def test_pods_of_other_namespaces_are_not_touched() -> None:
    async with colocation() as scene:
        far = pod_object(app="x")
        far["metadata"]["namespace"] = "far"
        scene.server.put(kinds.PODS, far)
        scene.server.put(kinds.PODS, pod_object(app="x"))
        scene.server.put(kinds.COLOCATION_CONFIGURATIONS, configuration("a", EVERYTHING))
        await scene.until(lambda: told(scene) == RIGHT)
        assert scene.server.count("patch", kinds.PODS) == 1
