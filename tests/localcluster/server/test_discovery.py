"""Discovery and OpenAPI documents."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from stromboli.api import crds, kinds
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.http.documents import Documents
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.statuses import StatusError
from tests.localcluster.server.objects import registry_with_widgets

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def read(registry: Registry, path: str, accept: str = "application/json") -> Any:
    return orjson.loads(Documents(registry, "127.0.0.1:1").find(path, accept, {}).body)


async def test_groups_versions_and_resources() -> None:
    registry = await registry_with_widgets()
    assert read(registry, "/api")["versions"] == ["v1"]
    groups = [group["name"] for group in read(registry, "/apis")["groups"]]
    assert groups[:2] == ["apps", "batch"] and groups[-1] == "example.com"
    assert read(registry, "/apis/apps")["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    resources = {one["name"]: one for one in read(registry, "/apis/example.com/v1")["resources"]}
    assert set(resources) == {"widgets", "widgets/status", "widgets/scale"}
    assert resources["widgets"]["shortNames"] == ["wd"] and resources["widgets"]["categories"] == ["all"]
    assert resources["widgets/scale"] == {
        "name": "widgets/scale",
        "singularName": "",
        "namespaced": True,
        "kind": "Scale",
        "group": "autoscaling",
        "version": "v1",
        "verbs": ["get", "patch", "update"],
    }
    assert "namespaces/finalize" in {one["name"] for one in read(registry, "/api/v1")["resources"]}


async def test_the_aggregated_form_says_the_same() -> None:
    registry = await registry_with_widgets()
    for path in ("/api", "/apis"):
        for group in read(registry, path, AGGREGATED)["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                base = f"/apis/{name}/{version['version']}" if name else f"/api/{version['version']}"
                plain = {one["name"] for one in read(registry, base)["resources"]}
                told = {one["resource"] for one in version["resources"]} | {
                    f"{one['resource']}/{part['subresource']}"
                    for one in version["resources"]
                    for part in one.get("subresources", ())
                }
                assert told == plain


async def test_documents_follow_definitions() -> None:
    registry = await registry_with_widgets()
    documents = Documents(registry)
    documents.find("/apis/example.com/v1", "", {})
    await registry.delete(kinds.CUSTOM_RESOURCE_DEFINITIONS, None, "widgets.example.com")
    with pytest.raises(StatusError):
        documents.find("/apis/example.com/v1", "", {})


@pytest.mark.parametrize("path", ["/nothing", "/apis/none", "/openapi/v3/apis/none/v1", "/api/v2", "/openapi/v4"])
def test_other_paths_are_not_found(path: str) -> None:
    with pytest.raises(StatusError) as refused:
        Documents(new_registry()).find(path, "", {})
    assert refused.value.code == 404


def test_version_is_one_that_clients_know() -> None:
    version = read(new_registry(), "/version")
    assert (version["major"], version["minor"]) == ("1", "34") and version["gitVersion"].startswith("v1.34.")


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


async def test_every_reference_in_openapi_leads_somewhere() -> None:
    registry = new_registry()
    for definition in crds.custom_resource_definitions():
        await registry.create(kinds.CUSTOM_RESOURCE_DEFINITIONS, definition)
    for name in read(registry, "/openapi/v3")["paths"]:
        document = read(registry, f"/openapi/v3/{name}")
        known = {f"#/components/schemas/{schema}" for schema in document["components"]["schemas"]}
        schemas_only = references(document["components"])
        assert schemas_only <= known, name
        assert document["paths"]


def test_openapi_tells_how_lists_merge_and_what_dry_run_takes() -> None:
    document = read(new_registry(), "/openapi/v3/api/v1")
    containers = document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    pod = document["components"]["schemas"]["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "version": "v1", "kind": "Pod"}]
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert {parameter["name"] for parameter in patch["parameters"]} >= {"dryRun", "fieldValidation"}


async def test_a_changed_definition_gets_another_hash() -> None:
    registry = await registry_with_widgets()
    before = read(registry, "/openapi/v3")["paths"]["apis/example.com/v1"]
    definition = await registry.get(kinds.CUSTOM_RESOURCE_DEFINITIONS, None, "widgets.example.com")
    version = {**definition["spec"]["versions"][0], "schema": {"openAPIV3Schema": {"type": "object"}}}
    await registry.update(
        kinds.CUSTOM_RESOURCE_DEFINITIONS, {**definition, "spec": {**definition["spec"], "versions": [version]}}
    )
    assert read(registry, "/openapi/v3")["paths"]["apis/example.com/v1"] != before
