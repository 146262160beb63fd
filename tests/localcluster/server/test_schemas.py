"""Schemas: types, unknown fields, defaults, validation and rules, with the texts of the real server."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.localcluster.catalog import built_in_kinds
from stromboli.localcluster.schemas import (
    canonical,
    defaulting,
    pruning,
    requiring,
    rules,
    structural,
    typing,
    validating,
)
from stromboli.localcluster.schemas.reflection import schema_of
from tests.localcluster.server.objects import WIDGET_SCHEMA

POD = schema_of(kinds.PODS, "V1Pod")
DEPLOYMENT = schema_of(kinds.DEPLOYMENTS, "V1Deployment")
WIDGET = structural.root_schema(WIDGET_SCHEMA)


@pytest.mark.parametrize("served", built_in_kinds(schema_of, {}), ids=lambda served: served.kind.resource)
def test_every_built_in_kind_has_a_schema(served: Any) -> None:
    assert {"apiVersion", "kind", "metadata"} <= set(served.schema.properties)


def test_models_tell_types_required_fields_and_documentation() -> None:
    containers = POD.properties["spec"].properties["containers"]
    assert POD.properties["spec"].required == ("containers",)
    assert containers.type == "array" and containers.go_type == "[]v1.Container"
    assert containers.items is not None and containers.items.required == ("name",)
    assert containers.description.startswith("List of containers belonging to the pod.")
    assert (containers.list_type, containers.list_keys, containers.merge_key) == ("map", ("name",), "name")


TYPES = {
    "an object where a list belongs": (
        {"spec": {"containers": {}}},
        "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
    ),
    "a text where a number belongs": (
        {"spec": {"containers": [{"ports": [{"containerPort": "80"}]}]}},
        "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort "
        "of type int32",
    ),
    "a number where a text belongs": (
        {"spec": {"containers": [{"image": 1}]}},
        "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
    ),
    "a number as a label": (
        {"metadata": {"labels": {"a": 1}}},
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
    ),
    "a fraction where a whole number belongs": (
        {"spec": {"priority": 1.5}},
        "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
    ),
    "a number that is too large": (
        {"spec": {"priority": 2**31}},
        "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
    ),
    "a flag as a text": (
        {"spec": {"hostNetwork": "yes"}},
        "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
    ),
    "a bad quantity": (
        {"spec": {"containers": [{"resources": {"limits": {"cpu": "much"}}}]}},
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    "a bad time": (
        {"metadata": {"creationTimestamp": "yesterday"}},
        'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
    ),
    "a number as a quantity": ({"spec": {"containers": [{"resources": {"limits": {"cpu": 1}}}]}}, None),
    "null anywhere": ({"spec": None, "metadata": {"labels": None, "creationTimestamp": None}}, None),
    "a port by number or by name": ({"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": "web"}}}]}}, None),
    "a list as a port": (
        {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": []}}}]}},
        "json: cannot unmarshal array into Go struct field "
        "HTTPGetAction.spec.containers.livenessProbe.httpGet.port of type intstr.IntOrString",
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_type_mismatches_read_like_gos(name: str) -> None:
    value, want = TYPES[name]
    assert typing.mismatch(POD, value) == want


def test_unknown_fields_are_dropped_and_named_with_their_place() -> None:
    pod: dict[str, Any] = {"spec": {"foo": 1, "containers": [{"name": "a"}, {"name": "b", "bar": {}}]}, "top": 1}
    assert pruning.prune(POD, pod) == ["spec.foo", "spec.containers[1].bar", "top"]
    assert pod == {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}


def test_what_a_definition_preserves_is_kept() -> None:
    widget = {"spec": {"free": {"a": {"b": 1}}, "labels": {"any": "x"}, "other": 1}, "metadata": {"name": "w"}}
    assert pruning.prune(WIDGET, widget) == ["spec.other"]
    assert widget["spec"] == {"free": {"a": {"b": 1}}, "labels": {"any": "x"}}


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["spec", "metadata", "containers", "name", "labels", "env", "x"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["spec", "metadata", "status", "x"]), json))
def test_walkers_take_any_json_and_pruning_is_final(value: dict[str, Any]) -> None:
    pruned = copy.deepcopy(value)
    pruning.prune(POD, pruned)
    assert pruning.prune(POD, copy.deepcopy(pruned)) == []
    typing.mismatch(POD, value)
    defaulting.fill(WIDGET, copy.deepcopy(value))
    validating.validate(WIDGET, value)


def test_quantities_become_canonical_and_nulls_go() -> None:
    limits = {"cpu": "1000m", "memory": "2048Mi", "nvidia.com/gpu": 1}
    pod = {"spec": {"nodeName": None, "containers": [{"resources": {"limits": limits}}]}}
    canonical.canonicalize(POD, pod)
    assert pod == {
        "spec": {"containers": [{"resources": {"limits": {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": "1"}}}]}
    }


def test_required_texts_and_structs_are_missed() -> None:
    spec = {"selector": None, "template": {"spec": {"containers": [{"name": ""}, {"name": "a", "env": [{}]}]}}}
    assert [str(cause) for cause in requiring.check(DEPLOYMENT, {"metadata": {}, "spec": spec})] == [
        "spec.selector: Required value",
        "spec.template.spec.containers[0].name: Required value",
        "spec.template.spec.containers[1].env[0].name: Required value",
    ]


def test_defaults_fill_what_is_missing_at_every_depth() -> None:
    widget = {"spec": {"parts": [{"name": "a"}, {"name": "b", "count": 2}]}}
    defaulting.fill(WIDGET, widget)
    assert widget == {"spec": {"color": "red", "parts": [{"name": "a", "count": 1}, {"name": "b", "count": 2}]}}


def test_nulls_that_are_not_allowed_are_dropped_and_allowed_ones_stay() -> None:
    widget = {"spec": {"note": None, "name": None, "color": None}}
    defaulting.fill(WIDGET, widget)
    defaulting.drop_nulls(WIDGET, widget)
    assert widget == {"spec": {"note": None, "color": "red"}}


INVALID: dict[str, tuple[dict[str, Any], list[str]]] = {
    "everything is right": ({"size": 1, "color": "green", "name": "abc", "port": "http", "note": None}, []),
    "a required field is missing": ({}, ["spec.size: Required value"]),
    "a wrong type": (
        {"size": "1"},
        ['spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'],
    ),
    "a fraction": (
        {"size": 1.5},
        ['spec.size: Invalid value: "number": spec.size in body must be of type integer: "number"'],
    ),
    "a flag": (
        {"size": True},
        ['spec.size: Invalid value: "boolean": spec.size in body must be of type integer: "boolean"'],
    ),
    "null": ({"size": None}, ['spec.size: Invalid value: "null": spec.size in body must be of type integer: "null"']),
    "too small": ({"size": 0}, ["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"]),
    "too large": ({"size": 10}, ["spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9"]),
    "not in the enumeration": (
        {"size": 1, "color": "blue"},
        ['spec.color: Unsupported value: "blue": supported values: "red", "green"'],
    ),
    "too short and of the wrong form, of which the server tells the first": (
        {"size": 1, "name": "1"},
        ['spec.name: Invalid value: "1": spec.name in body should be at least 2 chars long'],
    ),
    "of the wrong form": (
        {"size": 1, "name": "12"},
        ["spec.name: Invalid value: \"12\": spec.name in body should match '^[a-z]+$'"],
    ),
    "too long": ({"size": 1, "name": "abcde"}, ["spec.name: Too long: may not be more than 4 bytes"]),
    "neither a number nor a text": (
        {"size": 1, "port": []},
        ['spec.port: Invalid value: "array": spec.port in body must be of type integer,string: "array"'],
    ),
    "no time": (
        {"size": 1, "when": "now"},
        ['spec.when: Invalid value: "now": spec.when in body must be of type date-time: "now"'],
    ),
    "a repeated item of a set": ({"size": 1, "tags": ["a", "b", "a"]}, ['spec.tags[2]: Duplicate value: "a"']),
    "a repeated key": (
        {"size": 1, "parts": [{"name": "a"}, {"name": "a"}]},
        ['spec.parts[1]: Duplicate value: {"name":"a"}'],
    ),
    "too many items": (
        {"size": 1, "parts": [{"name": name} for name in "abcd"]},
        ["spec.parts: Too many: 4: must have at most 3 items"],
    ),
    "a field of an item": (
        {"size": 1, "parts": [{"name": "a"}, {"count": 1}]},
        ["spec.parts[1].name: Required value"],
    ),
    "a map's value": (
        {"size": 1, "labels": {"a": 1}},
        ['spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"'],
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_validation_of_custom_resources(name: str) -> None:
    spec, want = INVALID[name]
    assert [str(cause) for cause in validating.validate(WIDGET, {"spec": spec})] == want


COMBINED: dict[str, tuple[dict[str, Any], Any, list[str]]] = {
    "anyOf": (
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {},
        ['"spec" must validate at least one schema (anyOf)'],
    ),
    "oneOf": (
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"a": 1, "b": 1},
        ['"spec" must validate one and only one schema (oneOf)'],
    ),
    "not": ({"not": {"required": ["a"]}}, {"a": 1}, ['"spec" must not validate the schema (not)']),
    "allOf": ({"allOf": [{"required": ["a"]}]}, {}, ["Required value"]),
    "minProperties": ({"minProperties": 1}, {}, ["spec in body should have at least 1 properties"]),
    "maxProperties": ({"maxProperties": 0}, {"a": 1}, ["Too many: 1: must have at most 0 items"]),
}


@pytest.mark.parametrize("name", COMBINED)
def test_combined_schemas(name: str) -> None:
    source, value, want = COMBINED[name]
    causes = validating.validate(structural.from_openapi({"type": "object", **source}), value, "spec")
    assert len(causes) == len(want)
    assert all(text in cause.message for cause, text in zip(causes, want, strict=True))


def test_items_and_multiples() -> None:
    listed = structural.from_openapi({"type": "array", "minItems": 1, "uniqueItems": True, "items": {"multipleOf": 2}})
    assert [cause.message for cause in validating.validate(listed, [], "x")] == [
        "Invalid value: 0: x in body should have at least 1 items"
    ]
    assert [cause.message for cause in validating.validate(listed, [2, 2, 3], "x")] == [
        "Invalid value: 3: x[2] in body should be a multiple of 2",
        "Invalid value: [2,2,3]: x in body shouldn't contain duplicates",
    ]


def test_rules_see_the_value_and_transition_rules_the_old_one_too() -> None:
    def broken(new: Any, **old: Any) -> list[str]:
        return [str(cause) for cause in rules.check(WIDGET, new, **old)]

    assert broken({"spec": {"size": 1, "name": "bad"}}) == ['spec: Invalid value: "object": name must not be bad']
    assert broken({"spec": {"size": 1}}, old={"spec": {"size": 2}}) == [
        'spec: Invalid value: "object": size must not shrink'
    ]
    assert broken({"spec": {"size": 3}}, old={"spec": {"size": 2}}) == []


def test_a_rule_that_cannot_be_evaluated_refuses_and_says_so() -> None:
    schema = structural.root_schema(
        {
            "type": "object",
            "properties": {"spec": {"type": "object", "x-kubernetes-validations": [{"rule": "self.a.b"}]}},
        }
    )
    (cause,) = rules.check(schema, {"spec": {}})
    assert cause.field == "spec" and "cannot be evaluated" in cause.message
