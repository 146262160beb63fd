"""OpenAPI v3 documents, one for each group and version: what ``kubectl explain``, ``apply`` and dry runs read. Pure.

Built-in types become named components as they are reached; custom resources keep the schema of their definition.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from stromboli.api.kinds import Kind
from stromboli.localcluster.catalog import Catalog, ServedKind
from stromboli.localcluster.schemas.reflection import metadata_schema
from stromboli.localcluster.schemas.structure import Schema
from stromboli.localcluster.storage import Object

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_META_TYPES = {"ObjectMeta", "ListMeta", "LabelSelector", "LabelSelectorRequirement", "OwnerReference",
               "ManagedFieldsEntry", "Status", "StatusDetails", "Condition"}  # fmt: skip
_PATCH_TYPES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_STRATEGIC = "application/strategic-merge-patch+json"
_PREFIX = "#/components/schemas/"


def path_of(group: str, version: str) -> str:
    """Name of a document below ``/openapi/v3``."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def index(catalog: Catalog) -> Object:
    """``/openapi/v3``; the hash changes with the kinds, so that clients may cache documents for ever."""
    paths = {}
    for group, versions in catalog.groups().items():
        for version, served in versions.items():
            seed = repr(sorted((one.kind.plural, one.is_custom and repr(one.schema.source)) for one in served))
            digest = hashlib.sha256(seed.encode()).hexdigest()[:32].upper()
            name = path_of(group, version)
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
    return {"paths": paths}


def document(served: Iterable[ServedKind]) -> Object:
    """The document of one group and version."""
    components = _Components()
    paths: Object = {}
    for one in served:
        name = components.root(one)
        paths |= _paths(one, name)
    info = {"title": "Kubernetes", "version": "embedded"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": components.schemas}}


class _Components:
    """Named schemas of one document."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}

    def root(self, served: ServedKind) -> str:
        """Add a kind and what it needs; the answer is its component's name."""
        kind = served.kind
        name = _root_name(kind, served.is_custom)
        schema = self._custom(served) if served.is_custom else self._struct(served.schema, kind)
        schema["x-kubernetes-group-version-kind"] = [{"group": kind.group, "version": kind.version, "kind": kind.kind}]
        self.schemas[name] = schema
        return name

    def _custom(self, served: ServedKind) -> Object:
        source = dict(served.schema.source or {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
        metadata = self._wire(metadata_schema(), served.kind)
        properties = {
            "apiVersion": {"type": "string", "description": "APIVersion defines the versioned schema of this object."},
            "kind": {"type": "string", "description": "Kind is the REST resource this object represents."},
            **(source.get("properties") or {}),
            "metadata": {"description": "Standard object's metadata.", "allOf": [metadata]},
        }
        return {**source, "properties": properties}

    def _struct(self, schema: Schema, kind: Kind) -> Object:
        result: Object = {"type": "object"}
        if schema.description:
            result["description"] = schema.description
        if schema.required:
            result["required"] = list(schema.required)
        if schema.map_type == "atomic":
            result["x-kubernetes-map-type"] = "atomic"
        result["properties"] = {name: self._field(child, kind) for name, child in schema.properties.items()}
        return result

    def _field(self, schema: Schema, kind: Kind) -> Object:
        wire = self._wire(schema, kind)
        if "$ref" in wire:
            # A reference takes no siblings in OpenAPI 3.0; allOf carries the description.
            wire = {"allOf": [wire], "default": {}}
        if schema.description:
            wire["description"] = schema.description
        if schema.merge_strategy:
            wire["x-kubernetes-patch-strategy"] = schema.merge_strategy
        if schema.merge_key:
            wire["x-kubernetes-patch-merge-key"] = schema.merge_key
        return wire

    def _wire(self, schema: Schema, kind: Kind) -> Object:
        if schema.title:
            return self._reference(schema, kind)
        if schema.int_or_string:
            return {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
        if schema.quantity:
            return {"oneOf": [{"type": "string"}, {"type": "number"}]}
        wire: Object = {"type": schema.type} if schema.type else {}
        if schema.format:
            wire["format"] = schema.format
        if schema.items is not None:
            wire["items"] = self._wire(schema.items, kind)
            wire["x-kubernetes-list-type"] = schema.list_type or "atomic"
            if schema.list_keys:
                wire["x-kubernetes-list-map-keys"] = list(schema.list_keys)
        elif schema.additional is not None:
            wire["additionalProperties"] = self._wire(schema.additional, kind)
        elif not schema.type:
            wire["type"] = "object"
        return wire

    def _reference(self, schema: Schema, kind: Kind) -> Object:
        short = re.sub(r"^.*\.", "", schema.go_type)
        owner = _META if short in _META_TYPES else _owner(kind)
        name = f"{owner}.{short}"
        if name not in self.schemas:
            self.schemas[name] = {}  # before its fields: some types contain themselves
            self.schemas[name] = self._struct(schema, kind)
        return {"$ref": _PREFIX + name}


def _owner(kind: Kind) -> str:
    group = kind.group.removesuffix(".k8s.io").partition(".")[0] or "core"
    return f"io.k8s.api.{group}.{kind.version}"


def _root_name(kind: Kind, is_custom: bool) -> str:
    if not is_custom:
        return f"{_owner(kind)}.{kind.kind}"
    reverse = ".".join(reversed(kind.group.split(".")))
    return f"{reverse}.{kind.version}.{kind.kind}"


# Paths: only what clients look for, which is the verbs of a kind and their parameters


def _paths(served: ServedKind, component: str) -> Object:
    kind = served.kind
    collection = kind.path("{namespace}")
    reference = {"$ref": _PREFIX + component}
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    found: Object = {}
    if "list" in served.verbs or "create" in served.verbs:
        found[collection] = _operations(("get", "list"), ("post", "post"), served=served, reference=reference, gvk=gvk)
    if "get" in served.verbs:
        found[f"{collection}/{{name}}"] = _operations(
            ("get", "get"), ("put", "put"), ("patch", "patch"), ("delete", "delete"),
            served=served, reference=reference, gvk=gvk,
        )  # fmt: skip
    return found


def _operations(*methods: tuple[str, str], served: ServedKind, reference: Object, gvk: Object) -> Object:
    return {method: _operation(action, served, reference, gvk) for method, action in methods}


def _operation(action: str, served: ServedKind, reference: Object, gvk: Object) -> Object:
    operation: Object = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
    }
    if action in ("post", "put", "patch", "delete"):
        names = ("dryRun", "fieldManager", "fieldValidation") if action != "delete" else ("dryRun",)
        operation["parameters"] = [_parameter(name) for name in names]
    if action in ("post", "put"):
        operation["requestBody"] = {"content": {"*/*": {"schema": reference}}}
    elif action == "patch":
        media_types = _PATCH_TYPES if served.is_custom else (*_PATCH_TYPES, _STRATEGIC)
        body = {"$ref": f"{_PREFIX}{_META}.Patch"}
        operation["requestBody"] = {"content": {media_type: {"schema": body} for media_type in media_types}}
    return operation


def _parameter(name: str) -> Object:
    return {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
