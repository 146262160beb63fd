"""Server-side apply: who manages what, conflicts, and what is removed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import kinds
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.patching import fieldsets
from stromboli.localcluster.patching.patches import ApplyPatch, MergePatch
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.requests import WriteOptions
from stromboli.localcluster.schemas.reflection import schema_of
from stromboli.localcluster.statuses import StatusError
from tests.localcluster.server.objects import WIDGETS, deployment, registry_with_widgets, widget

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}


def config_map(**data: str) -> dict[str, Any]:
    return {**CONFIG_MAP, "metadata": {"name": "c", "namespace": "default"}, "data": data}


async def apply(registry: Registry, manager: str, wanted: dict[str, Any], *, force: bool = False) -> dict[str, Any]:
    options = WriteOptions(field_manager=manager, force=force)
    kind = kinds.CONFIG_MAPS if wanted["kind"] == "ConfigMap" else kinds.DEPLOYMENTS
    return await registry.patch(kind, "default", wanted["metadata"]["name"], ApplyPatch(wanted), options)


def managers(obj: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {(one["manager"], one["operation"]): one["fieldsV1"] for one in obj["metadata"].get("managedFields") or ()}


async def test_applying_to_nothing_creates() -> None:
    registry = new_registry()
    obj = await apply(registry, "m", config_map(a="1"))
    assert obj["data"] == {"a": "1"}
    assert managers(obj) == {("m", "Apply"): {"f:data": {"f:a": {}}}}


async def test_applying_the_same_again_writes_nothing() -> None:
    registry = new_registry()
    first = await apply(registry, "m", config_map(a="1"))
    assert await apply(registry, "m", config_map(a="1")) == first


async def test_fields_that_are_no_longer_named_are_removed() -> None:
    registry = new_registry()
    await apply(registry, "m", config_map(a="1", b="2"))
    assert (await apply(registry, "m", config_map(b="2")))["data"] == {"b": "2"}


async def test_status_of_a_custom_resource_loses_what_is_no_longer_applied() -> None:
    registry = await registry_with_widgets()
    await registry.create(WIDGETS, widget(), options=WriteOptions(field_manager="u"))

    async def report(**status: int) -> dict[str, Any]:
        wanted = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "status": status}
        return await registry.patch(
            WIDGETS, "default", "w", ApplyPatch(wanted), WriteOptions(field_manager="m"), "status"
        )

    first = await report(ready=1, replicas=3)
    assert managers(first)["m", "Apply"] == {"f:status": {"f:ready": {}, "f:replicas": {}}}
    assert await report(ready=1, replicas=3) == first
    assert (await report(ready=1))["status"] == {"ready": 1}
    await registry.patch(WIDGETS, "default", "w", MergePatch({"spec": {"size": 2}}), WriteOptions(field_manager="u"))
    assert managers(await report(ready=2))["m", "Apply"] == {"f:status": {"f:ready": {}}}


async def test_fields_that_others_also_manage_stay() -> None:
    registry = new_registry()
    await apply(registry, "m", config_map(a="1", b="2"))
    await apply(registry, "n", config_map(a="1"))
    obj = await apply(registry, "m", config_map(b="2"))
    assert obj["data"] == {"a": "1", "b": "2"}
    assert managers(obj)["n", "Apply"] == {"f:data": {"f:a": {}}}


async def test_changing_what_another_manages_is_a_conflict() -> None:
    registry = new_registry()
    await apply(registry, "m", config_map(a="1"))
    with pytest.raises(StatusError) as refused:
        await apply(registry, "n", config_map(a="2"))
    assert refused.value.code == 409 and refused.value.reason == "Conflict"
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "m": .data.a'
    assert refused.value.details["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "m"', "field": ".data.a"}
    ]


async def test_several_conflicts_are_listed_by_manager() -> None:
    registry = new_registry()
    await registry.create(kinds.CONFIG_MAPS, config_map(a="1", b="1"), options=WriteOptions(field_manager="u"))
    with pytest.raises(StatusError) as refused:
        await apply(registry, "n", config_map(a="2", b="2"))
    assert refused.value.message == (
        'Apply failed with 2 conflicts: conflicts with "u" using v1:\n- .data.a\n- .data.b'
    )


async def test_force_takes_a_field_over() -> None:
    registry = new_registry()
    await apply(registry, "m", config_map(a="1", b="1"))
    obj = await apply(registry, "n", config_map(a="2"), force=True)
    assert obj["data"] == {"a": "2", "b": "1"}
    assert managers(obj) == {("m", "Apply"): {"f:data": {"f:b": {}}}, ("n", "Apply"): {"f:data": {"f:a": {}}}}


async def test_an_update_takes_the_changed_fields_over() -> None:
    registry = new_registry()
    await apply(registry, "m", config_map(a="1", b="1"))
    patch = MergePatch({"data": {"a": "2", "b": None}})
    obj = await registry.patch(kinds.CONFIG_MAPS, "default", "c", patch, WriteOptions(field_manager="u"))
    assert managers(obj) == {("u", "Update"): {"f:data": {"f:a": {}}}}


async def test_objects_without_managers_belong_to_whoever_was_before() -> None:
    registry = new_registry()
    await registry.create(kinds.CONFIG_MAPS, config_map(a="1"))
    with pytest.raises(StatusError, match='conflict with "before-first-apply" using v1: .data.a'):
        await apply(registry, "m", config_map(a="2"))


async def test_containers_are_managed_by_name_and_status_is_not_the_main_resources() -> None:
    registry = new_registry()
    wanted = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment()}
    obj = await apply(registry, "m", wanted)
    fields = managers(obj)["m", "Apply"]
    container = fields["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"main"}']
    assert container == {".": {}, "f:image": {}, "f:name": {}}
    assert "f:status" not in fields
    wanted["spec"]["template"]["spec"]["containers"] = [{"name": "other", "image": "i"}]
    changed = await apply(registry, "m", wanted)
    assert [one["name"] for one in changed["spec"]["template"]["spec"]["containers"]] == ["other"]


async def test_a_list_stays_when_a_client_side_manager_hands_it_over() -> None:
    """kubectl's move to server-side apply renames an Update manager, whose sets name the list itself."""
    registry = new_registry()
    wanted = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment()}
    obj = await registry.create(kinds.DEPLOYMENTS, wanted, options=WriteOptions(field_manager="client"))
    entries = [{**obj["metadata"]["managedFields"][0], "operation": "Apply"}]
    moved = MergePatch({"metadata": {"managedFields": entries}})
    await registry.patch(kinds.DEPLOYMENTS, "default", "d", moved, WriteOptions(field_manager="client"))
    after = await apply(registry, "client", wanted)
    assert [one["name"] for one in after["spec"]["template"]["spec"]["containers"]] == ["main"]


async def test_the_configuration_must_say_what_it_is_and_not_claim_managers() -> None:
    registry = new_registry()
    nameless = {"metadata": {"name": "c"}, "data": {"a": "1"}}
    for bad in (nameless, {**config_map(), "metadata": {"name": "c", "managedFields": [{"manager": "x"}]}}):
        with pytest.raises(StatusError) as refused:
            await registry.patch(kinds.CONFIG_MAPS, "default", "c", ApplyPatch(bad), WriteOptions(field_manager="m"))
        assert refused.value.code == 400


# Algebra

POD = schema_of(kinds.PODS, "V1Pod")
labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)
named = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc"), "image": st.sampled_from("xy")}),
    unique_by=lambda one: one["name"],
    max_size=3,
)
pods = st.builds(
    lambda found, listed, node: {"metadata": {"labels": found}, "spec": {"containers": listed, "nodeName": node}},
    labels,
    named,
    st.sampled_from("mn"),
)


@given(pods, pods)
def test_field_sets_obey_set_algebra(one: Any, other: Any) -> None:
    left, right = fieldsets.fields_of(POD, one), fieldsets.fields_of(POD, other)
    paths = {name: set(fieldsets.paths(found)) for name, found in (("left", left), ("right", right))}
    assert set(fieldsets.paths(fieldsets.union(left, right))) >= paths["left"] | paths["right"] - {""}
    assert set(fieldsets.paths(fieldsets.common(left, right))) <= paths["left"] & paths["right"]
    assert not set(fieldsets.paths(fieldsets.without(left, right))) & paths["right"]
    assert fieldsets.without(left, left) == {}
    assert fieldsets.released(left, left) == {}


@given(pods, pods)
def test_merging_the_whole_of_another_object_sets_all_its_fields(live: Any, wanted: Any) -> None:
    merged = fieldsets.merged(POD, live, wanted)
    assert fieldsets.merged(POD, merged, wanted) == merged
    assert fieldsets.difference_of(POD, merged, fieldsets.merged(POD, merged, wanted)) == ({}, {})
    assert merged["spec"]["nodeName"] == wanted["spec"]["nodeName"]
    for one in wanted["spec"]["containers"]:
        assert one in merged["spec"]["containers"]


@given(pods, pods)
def test_equal_objects_and_only_they_have_no_difference(one: Any, other: Any) -> None:
    difference = fieldsets.difference_of(POD, one, other)
    by_name = {item["name"]: item for item in one["spec"]["containers"]}
    by_other = {item["name"]: item for item in other["spec"]["containers"]}
    same = {**one, "spec": {**one["spec"], "containers": by_name}} == {
        **other,
        "spec": {**other["spec"], "containers": by_other},
    }
    assert (difference == ({}, {})) is same
