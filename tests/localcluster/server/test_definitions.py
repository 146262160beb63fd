"""Custom resource definitions: established, served, changed, removed."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api import crds, kinds
from stromboli.localcluster import snapshots
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.requests import WriteOptions
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Store
from tests.localcluster.server.objects import WIDGETS, registry_with_widgets, widget, widget_definition

CRDS = kinds.CUSTOM_RESOURCE_DEFINITIONS


async def test_a_definition_is_established_at_once_and_its_kind_served() -> None:
    registry = await registry_with_widgets()
    definition = await registry.get(CRDS, None, "widgets.example.com")
    conditions = {one["type"]: one["status"] for one in definition["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert definition["status"]["acceptedNames"]["singular"] == "widget"
    assert definition["status"]["storedVersions"] == ["v1"]
    served = registry.served(WIDGETS)
    assert served.names.short == ("wd",) and served.selectable == ("spec.color",)


async def test_objects_are_defaulted_pruned_and_validated() -> None:
    registry = await registry_with_widgets()
    obj = await registry.create(WIDGETS, widget(parts=[{"name": "a", "junk": 1}], other=1))
    assert obj["spec"] == {"size": 1, "color": "red", "parts": [{"name": "a", "count": 1}]}
    with pytest.raises(StatusError) as refused:
        await registry.create(WIDGETS, widget("x", size="big", name="bad"))
    assert refused.value.message == (
        'Widget.example.com "x" is invalid: [spec.size: Invalid value: "string": spec.size in body must be of '
        "type integer: "
        '"string", <nil>: Invalid value: null: some validation rules were not checked because the object was '
        "invalid; "
        "correct the existing errors to complete validation]"
    )
    with pytest.raises(StatusError, match='spec: Invalid value: "object": name must not be bad'):
        await registry.create(WIDGETS, widget("x", name="bad"))


async def test_strict_decoding_of_custom_resources() -> None:
    registry = await registry_with_widgets()
    with pytest.raises(StatusError) as refused:
        await registry.create(WIDGETS, widget(other=1), options=WriteOptions(field_validation="Strict"))
    assert refused.value.message == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.other"'
    )


async def test_a_changed_schema_holds_for_the_next_write() -> None:
    registry = await registry_with_widgets()
    definition = await registry.get(CRDS, None, "widgets.example.com")
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "maxProperties": 0}}}}
    spec = {**definition["spec"], "versions": [{**definition["spec"]["versions"][0], "schema": schema}]}
    await registry.update(CRDS, {**definition, "spec": spec})
    assert (await registry.create(WIDGETS, widget()))["spec"] == {}


async def test_removing_a_definition_removes_its_objects_and_the_kind() -> None:
    registry = await registry_with_widgets()
    await registry.create(WIDGETS, widget())
    await registry.delete(CRDS, None, "widgets.example.com")
    assert registry.store.list(CRDS) == [] and registry.store.list(WIDGETS) == []
    assert registry.kinds.of(WIDGETS) is None


async def test_a_definition_waits_for_objects_with_finalizers() -> None:
    registry = await registry_with_widgets()
    held = widget()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await registry.create(WIDGETS, held)
    await registry.delete(CRDS, None, "widgets.example.com")
    assert len(registry.store.list(CRDS)) == 1
    obj = await registry.get(WIDGETS, "default", "w")
    await registry.update(WIDGETS, {**obj, "metadata": {**obj["metadata"], "finalizers": []}})
    assert registry.store.list(CRDS) == [] and registry.kinds.of(WIDGETS) is None


async def test_definitions_in_a_restored_store_are_served() -> None:
    registry = await registry_with_widgets()
    await registry.create(WIDGETS, widget())
    store = Store()
    snapshots.restore(store, snapshots.take(registry.store))
    assert (await new_registry(store).get(WIDGETS, "default", "w"))["spec"]["size"] == 1


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no schema": ({"schema": {}}, "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"),
    "a root that is no object": (
        {"schema": {"openAPIV3Schema": {"type": "string"}}},
        'spec.versions[0].schema.openAPIV3Schema.type: Invalid value: "string": must be object at the root',
    ),
    "no storage version": ({"storage": False}, "must have exactly one version marked as storage version"),
    "a pattern that does not compile": (
        {"schema": {"openAPIV3Schema": {"type": "object", "properties": {"x": {"type": "string", "pattern": "("}}}}},
        "must be a valid regular expression",
    ),
    "a rule that does not compile": (
        {"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-validations": [{"rule": "self.("}]}}},
        "compilation failed",
    ),
}


@pytest.mark.parametrize("name", BAD)
async def test_bad_definitions_are_refused(name: str) -> None:
    version, want = BAD[name]
    registry = new_registry()
    with pytest.raises(StatusError) as refused:
        await registry.create(CRDS, widget_definition(**version))
    assert refused.value.code == 422 and want in refused.value.message
    assert registry.kinds.of(WIDGETS) is None


async def test_a_definition_is_named_after_its_plural_and_group() -> None:
    definition = widget_definition()
    definition["metadata"]["name"] = "gadgets.example.com"
    with pytest.raises(StatusError, match="must be spec.names.plural"):
        await new_registry().create(CRDS, definition)


@pytest.mark.parametrize("definition", crds.custom_resource_definitions(), ids=lambda one: one["metadata"]["name"])
async def test_our_own_definitions_are_accepted(definition: dict[str, Any]) -> None:
    registry = new_registry()
    obj = await registry.create(CRDS, definition, options=WriteOptions(field_validation="Strict"))
    kind = next(one for one in kinds.OWN if one.resource == obj["metadata"]["name"])
    assert {"apiVersion", "kind", "metadata"} < set(registry.served(kind).schema.properties)
