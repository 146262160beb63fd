"""From a CustomResourceDefinition to the kinds it serves, and the definition's own defaults, checks and status."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from stromboli.api.kinds import Kind
from stromboli.localcluster import clock
from stromboli.localcluster.catalog import Column, Names, ScalePaths, ServedKind
from stromboli.localcluster.schemas import rules
from stromboli.localcluster.schemas.structural import from_openapi, root_schema
from stromboli.localcluster.schemas.structure import ANYTHING, Schema
from stromboli.localcluster.schemas.validating import bad, duplicate, missing
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.storage import Object
from stromboli.localcluster.strategies.common import Plain, set_defaults, spec_of

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer that holds a definition until its objects are gone."""


def served_kinds(definition: Object) -> list[ServedKind]:
    """One kind for each served version."""
    spec = definition["spec"]
    return [_served(spec, version) for version in spec["versions"] if version.get("served")]


def storage_kind(definition: Object) -> Kind:
    """The kind under which the definition's objects are stored (identity knows no versions)."""
    spec = definition["spec"]
    version = next(version["name"] for version in spec["versions"] if version.get("storage"))
    return _kind(spec, version)


def all_kinds(definition: Object) -> list[Kind]:
    """The kinds of all versions, served or not."""
    spec = definition["spec"]
    return [_kind(spec, version["name"]) for version in spec["versions"]]


def _kind(spec: Mapping[str, Any], version: str) -> Kind:
    names = spec["names"]
    return Kind(spec["group"], version, names["plural"], names["kind"], namespaced=spec["scope"] == "Namespaced")


def _served(spec: Mapping[str, Any], version: Mapping[str, Any]) -> ServedKind:
    names = spec["names"]
    subresources = version.get("subresources") or {}
    source = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    scale = subresources.get("scale")
    return ServedKind(
        kind=_kind(spec, version["name"]),
        names=Names(names["singular"], tuple(names.get("shortNames") or ()), tuple(names.get("categories") or ())),
        load_schema=lambda: _schema(spec, source),
        has_status="status" in subresources,
        has_generation=True,
        scale=_scale(scale) if scale else None,
        selectable=tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
        columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
        is_custom=True,
        requires_version=True,
    )


def _schema(spec: Mapping[str, Any], source: Mapping[str, Any]) -> Schema:
    if not source:
        return ANYTHING
    if spec.get("preserveUnknownFields"):
        source = {**source, "x-kubernetes-preserve-unknown-fields": True}
    return root_schema(source)


def _scale(scale: Mapping[str, Any]) -> ScalePaths:
    return ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath", ""))


def _column(column: Mapping[str, Any]) -> Column:
    return Column(
        column["name"], column["type"], column["jsonPath"], column.get("format", ""), column.get("description", ""),
        column.get("priority", 0),
    )  # fmt: skip


class Definitions(Plain):
    """The strategy of CustomResourceDefinition: names are accepted and versions established at once."""

    def default(self, obj: Object) -> None:
        spec = spec_of(obj)
        names = spec_of(spec, "names")
        if names.get("kind"):
            set_defaults(names, singular=names["kind"].lower(), listKind=f"{names['kind']}List")
        set_defaults(spec, conversion={"strategy": "None"})

    def prepare_create(self, obj: Object) -> None:
        metadata, spec = obj["metadata"], spec_of(obj)
        metadata["finalizers"] = [*(metadata.get("finalizers") or []), CLEANUP]
        names = {**spec_of(spec, "names")}
        if names.get("kind"):
            set_defaults(names, singular=names["kind"].lower(), listKind=f"{names['kind']}List")
        stored = [version.get("name") for version in spec.get("versions") or () if version.get("storage")]
        obj["status"] = {
            "conditions": [
                _condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                _condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            ],
            "acceptedNames": names,
            "storedVersions": stored,
        }

    def prepare_update(self, obj: Object, old: Object) -> None:
        status = obj.get("status")
        if isinstance(status, dict):
            status = obj["status"] = {**status, "acceptedNames": {**spec_of(spec_of(obj), "names")}}
            stored = status.get("storedVersions") or []
            fresh = [version["name"] for version in obj["spec"].get("versions") or () if version.get("storage")]
            status["storedVersions"] = list(dict.fromkeys([*stored, *fresh]))

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        return list(_check(obj, old))


def _condition(name: str, reason: str, message: str) -> dict[str, str]:
    return {
        "type": name,
        "status": "True",
        "lastTransitionTime": clock.timestamp(),
        "reason": reason,
        "message": message,
    }


def terminating(obj: Object) -> Object:
    """The definition with its Terminating condition."""
    condition = _condition("Terminating", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
    conditions = [one for one in obj["status"].get("conditions") or () if one["type"] != "Terminating"]
    return {**obj, "status": {**obj["status"], "conditions": [*conditions, condition]}}


def _check(obj: Object, old: Object | None) -> Iterator[Cause]:
    spec = obj["spec"]
    names = spec.get("names") or {}
    name, wanted = obj["metadata"]["name"], f"{names.get('plural')}.{spec.get('group')}"
    if name != wanted:
        yield bad("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        allowed = '"Cluster", "Namespaced"'
        shown = f'Unsupported value: "{spec.get("scope")}": supported values: {allowed}'
        yield Cause("FieldValueNotSupported", "spec.scope", shown)
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield bad("spec.versions", versions and [version.get("name") for version in versions],
                  "must have exactly one version marked as storage version")  # fmt: skip
    seen: set[str] = set()
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if version.get("name") in seen:
            yield duplicate(f"{path}.name", version.get("name"))
        seen.add(version.get("name", ""))
        yield from _check_version(version, path)
    if old is not None:
        yield from _check_change(spec, old["spec"])


def _check_version(version: Mapping[str, Any], path: str) -> Iterator[Cause]:
    source = (version.get("schema") or {}).get("openAPIV3Schema")
    place = f"{path}.schema.openAPIV3Schema"
    if not source:
        yield missing(place, "schemas are required")
        return
    if source.get("type") != "object" and not source.get("x-kubernetes-preserve-unknown-fields"):
        yield bad(f"{place}.type", source.get("type", ""), "must be object at the root")
    for pattern, problem in _bad_patterns(source):
        yield bad(f"{place}.pattern", pattern, f"must be a valid regular expression, but isn't: {problem}")
    for rule, problem in rules.unreadable(from_openapi(source)):
        yield bad(f"{place}.x-kubernetes-validations.rule", rule, f"compilation failed: {problem}")


def _bad_patterns(source: object) -> Iterator[tuple[str, str]]:
    """Patterns that cannot be compiled, with the reason."""
    if isinstance(source, Mapping):
        pattern = source.get("pattern")
        if isinstance(pattern, str):
            try:
                re.compile(pattern)
            except re.error as error:
                yield pattern, str(error)
        for below in source.values():
            yield from _bad_patterns(below)
    elif isinstance(source, list):
        for below in source:
            yield from _bad_patterns(below)


def _check_change(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    for name in ("group", "scope"):
        if spec.get(name) != old.get(name):
            yield bad(f"spec.{name}", spec.get(name), "field is immutable")
    if (spec.get("names") or {}).get("kind") != old["names"]["kind"]:
        yield bad("spec.names.kind", spec["names"].get("kind"), "field is immutable")
