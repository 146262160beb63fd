"""JSON, merge and strategic merge patches."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.localcluster.patching import merge, strategic
from stromboli.localcluster.patching.patches import JsonPatch, MergePatch, StrategicPatch
from stromboli.localcluster.schemas.reflection import schema_of
from stromboli.localcluster.schemas.structure import ANYTHING
from stromboli.localcluster.statuses import StatusError

POD = schema_of(kinds.PODS, "V1Pod")
DEPLOYMENT = schema_of(kinds.DEPLOYMENTS, "V1Deployment")


@dataclass(frozen=True)
class Case:
    present: dict[str, Any]
    patch: dict[str, Any]
    want: dict[str, Any]


def containers(*found: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(found)}}


STRATEGIC = {
    "a container is merged by its name": Case(
        containers({"name": "a", "image": "1"}, {"name": "b", "image": "1"}),
        containers({"name": "b", "image": "2"}),
        containers({"name": "a", "image": "1"}, {"name": "b", "image": "2"}),
    ),
    "a container that is not there is added": Case(
        containers({"name": "a"}), containers({"name": "c"}), containers({"name": "a"}, {"name": "c"})
    ),
    "a directive deletes one item": Case(
        containers({"name": "a"}, {"name": "b"}),
        containers({"name": "a", "$patch": "delete"}),
        containers({"name": "b"}),
    ),
    "a directive replaces the whole list": Case(
        containers({"name": "a"}), containers({"$patch": "replace"}, {"name": "z"}), containers({"name": "z"})
    ),
    "an order is kept as the patch wants it": Case(
        containers({"name": "a"}, {"name": "b"}),
        {
            "spec": {
                "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                "containers": [{"name": "b", "image": "x"}],
            }
        },
        containers({"name": "b", "image": "x"}, {"name": "a"}),
    ),
    "environment variables merge inside containers": Case(
        containers({"name": "a", "env": [{"name": "X", "value": "1"}]}),
        containers({"name": "a", "env": [{"name": "Y", "value": "2"}]}),
        containers({"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}),
    ),
    "tolerations are replaced as a whole": Case(
        {"spec": {"tolerations": [{"key": "a"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
    ),
    "null removes a label": Case(
        {"metadata": {"labels": {"a": "1", "b": "2"}}},
        {"metadata": {"labels": {"a": None}}},
        {"metadata": {"labels": {"b": "2"}}},
    ),
    "finalizers are a set": Case(
        {"metadata": {"finalizers": ["a"]}},
        {"metadata": {"finalizers": ["b", "a"]}},
        {"metadata": {"finalizers": ["a", "b"]}},
    ),
    "an item of a primitive list is deleted": Case(
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"metadata": {"finalizers": ["b"]}},
    ),
    "a map is replaced by directive": Case(
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"$patch": "replace", "b": "2"}}},
        {"metadata": {"labels": {"b": "2"}}},
    ),
    "a map is deleted by directive": Case(
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"$patch": "delete"}}},
        {"metadata": {"labels": {}}},
    ),
}


@pytest.mark.parametrize("name", STRATEGIC)
def test_strategic_merge(name: str) -> None:
    case = STRATEGIC[name]
    present = copy.deepcopy(case.present)
    assert StrategicPatch(case.patch).apply(POD, present) == case.want
    assert present == case.present


def test_strategic_merge_keeps_only_the_named_keys_of_a_union() -> None:
    present = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic.merged(DEPLOYMENT, present, patch) == {"spec": {"strategy": {"type": "Recreate"}}}


@pytest.mark.parametrize(
    ("patch", "want"),
    [
        (containers({"image": "x"}), "does not contain declared merge key: name"),
        ({"spec": {"$patch": "explode"}}, "Unknown patch type found: explode"),
        ({"spec": {"$retainKeys": "x"}}, "must be a list"),
    ],
)
def test_directives_that_cannot_be_followed_are_refused(patch: dict[str, Any], want: str) -> None:
    with pytest.raises(StatusError, match=want) as refused:
        StrategicPatch(patch).apply(POD, containers({"name": "a"}))
    assert refused.value.code == 400


MERGE = {
    "objects merge": Case({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
    "null deletes": Case({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
    "lists are replaced": Case({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    "a scalar becomes an object": Case({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
}


@pytest.mark.parametrize("name", MERGE)
def test_merge_patch(name: str) -> None:
    case = MERGE[name]
    assert MergePatch(case.patch).apply(ANYTHING, case.present) == case.want


documents = st.recursive(
    st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abc"), documents, max_size=3)


@given(objects, objects)
def test_a_merge_patch_applied_twice_changes_nothing_more(present: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge.merged(present, patch)
    assert merge.merged(once, patch) == once


def test_json_patch() -> None:
    operations = [{"op": "add", "path": "/a/-", "value": 2}, {"op": "remove", "path": "/b"}]
    assert JsonPatch(operations).apply(ANYTHING, {"a": [1], "b": 1}) == {"a": [1, 2]}


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([{"op": "remove", "path": "/missing"}], 422),
        ([{"op": "test", "path": "/a", "value": 2}], 422),
        ([{"op": "jump", "path": "/a"}], 422),
        (["nonsense"], 400),
        ([{"op": "replace", "path": "", "value": 1}], 400),
    ],
)
def test_json_patches_that_do_not_fit_are_refused(operations: list[Any], code: int) -> None:
    with pytest.raises(StatusError) as refused:
        JsonPatch(operations).apply(ANYTHING, {"a": 1})
    assert refused.value.code == code
