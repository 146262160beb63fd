from copy import deepcopy
from typing import Any

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from stromboli.webhooks import patches

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text(alphabet="ab~/0", max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="ab~/0", max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(alphabet="ab~/0", max_size=3), VALUES, max_size=4)


def same(one: Any, other: Any) -> bool:
    """Equality of JSON: ``1`` and ``true`` are two values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(OBJECTS, OBJECTS)
def test_a_patch_turns_the_first_object_into_the_second(before: dict[str, Any], after: dict[str, Any]) -> None:
    patched = jsonpatch.apply_patch(deepcopy(before), patches.derive(before, after))
    assert same(patched, after)


@given(OBJECTS)
def test_equal_objects_need_no_patch(obj: dict[str, Any]) -> None:
    assert patches.derive(obj, deepcopy(obj)) == []


def test_a_patch_touches_only_what_changed() -> None:
    before = {"spec": {"tasks": [{"name": "a"}, {"name": "b", "replicas": 1}], "keep": {"x": [1, 2]}}}
    after = {"spec": {"tasks": [{"name": "a"}, {"name": "b", "replicas": 2}, {"name": "c"}], "keep": {"x": [1, 2]}}}
    assert patches.derive(before, after) == [
        {"op": "replace", "path": "/spec/tasks/1/replicas", "value": 2},
        {"op": "add", "path": "/spec/tasks/-", "value": {"name": "c"}},
    ]


def test_names_with_slashes_and_tildes_are_escaped() -> None:
    found = patches.derive({"annotations": {}}, {"annotations": {"a/b~c": "1"}})
    assert found == [{"op": "add", "path": "/annotations/a~1b~0c", "value": "1"}]
