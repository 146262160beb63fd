"""Objects that cannot be read: every wrong type is named, in the message and as a cause."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.webhooks.errors import MAX_CAUSES, causes
from stromboli.webhooks.misfits import misfits
from stromboli.webhooks.shapes import CronJob, HyperNode, Job, JobFlow, JsonObject, Malformed, PodGroup, Queue, read
from tests.webhooks.building import decide, job, queue, task

WRONG: dict[str, tuple[str, JsonObject, list[str]]] = {
    "one wrong type": (
        "/jobs/mutate",
        job({**task(), "replicas": "3"}),
        ["spec.tasks[0].replicas: Invalid type: expected `int`, got `str`"],
    ),
    "members of the spec, of tasks and behind them": (
        "/jobs/mutate",
        job(tasks=[{**task("a"), "replicas": "3"}, task("b"), "c"], minAvailable=[1], policies=[{"exitCode": "1"}]),
        [
            "spec.minAvailable: Invalid type: expected `int`, got `array`",
            "spec.tasks[0].replicas: Invalid type: expected `int`, got `str`",
            "spec.tasks[2]: Invalid type: expected `object`, got `str`",
            "spec.policies[0].exitCode: Invalid type: expected `int | null`, got `str`",
        ],
    ),
    "inside what may be left out": (
        "/jobs/mutate",
        job(task(dependsOn={"name": [1, "a", {}]}), networkTopology={"highestTierAllowed": "x", "highestTierName": 1}),
        [
            "spec.tasks[0].dependsOn.name[0]: Invalid type: expected `str`, got `int`",
            "spec.tasks[0].dependsOn.name[2]: Invalid type: expected `str`, got `object`",
            "spec.networkTopology.highestTierAllowed: Invalid type: expected `int | null`, got `str`",
            "spec.networkTopology.highestTierName: Invalid type: expected `str`, got `int`",
        ],
    ),
    "maps, each of which is one field": (
        "/queues/mutate",
        queue("q", weight="1", capability={"cpu": [], "memory": {}}, deserved=3),
        [
            "spec.weight: Invalid type: expected `int`, got `str`",
            "spec.capability: Invalid type: expected `int | float | str`, got `array`",
            "spec.deserved: Invalid type: expected `object`, got `int`",
        ],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_every_wrong_type_is_named(name: str) -> None:
    path, obj, want = WRONG[name]
    verdict = decide(path, obj)
    assert not verdict.allowed
    assert sorted(error.text for error in verdict.errors) == sorted(want)
    assert {cause["field"] for cause in causes(verdict.errors)} == {text.partition(":")[0] for text in want}
    assert all(text in verdict.message for text in want)


def test_an_object_that_is_wrong_everywhere_gets_a_bounded_answer() -> None:
    verdict = decide("/jobs/mutate", job(*({**task(), "replicas": "3"} for _ in range(10_000))))
    assert len(verdict.errors) == MAX_CAUSES


SHAPES = st.sampled_from([Job, Queue, PodGroup, JobFlow, CronJob, HyperNode])
WORDS = st.sampled_from(
    ["spec", "metadata", "name", "tasks", "queue", "replicas", "flows", "dependsOn", "members", "selector", "weight"]
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=20,
)


@given(SHAPES, st.dictionaries(WORDS, values, max_size=4))
def test_there_is_a_misfit_exactly_where_an_object_cannot_be_read(shape: type[msgspec.Struct], obj: JsonObject) -> None:
    found = list(misfits(shape, obj, ""))
    try:
        read(shape, obj)
    except Malformed as error:
        assert list(error.errors) == found[:MAX_CAUSES]
        assert found
        assert all(fault.field for fault in found)
    else:
        assert found == []
