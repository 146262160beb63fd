"""Schemas of custom resources, from the structural ``openAPIV3Schema`` of a CRD version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stromboli.localcluster.schemas.reflection import metadata_schema
from stromboli.localcluster.schemas.structure import Schema

_VALIDATED = (
    "maxLength", "minLength", "pattern", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf",
    "maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties", "enum", "anyOf", "oneOf", "allOf", "not",
)  # fmt: skip
"""Keywords in the order in which the real server looks at them."""

_JSON_NAMES = {"integer": "int64", "number": "float64", "boolean": "bool", "string": "string"}


def root_schema(source: Mapping[str, Any]) -> Schema:
    """Schema of a whole custom resource; ``metadata`` gets its built-in type, whatever the CRD says of it."""
    inner = from_openapi(source)

    def properties() -> dict[str, Schema]:
        return {
            "apiVersion": Schema("string", go_type="string"),
            "kind": Schema("string", go_type="string"),
            **inner.properties,
            "metadata": metadata_schema(),
        }

    return Schema(
        type="object",
        load_properties=properties,
        required=inner.required,
        description=inner.description,
        preserve_unknown=inner.preserve_unknown,
        constraints=inner.constraints,
        rules=inner.rules,
        source=source,
    )


def from_openapi(source: Mapping[str, Any]) -> Schema:
    """One node and, lazily, what is below it."""
    properties = source.get("properties") or {}
    items = source.get("items")
    additional = source.get("additionalProperties")
    return Schema(
        type=source.get("type", ""),
        load_properties=lambda: {name: from_openapi(child) for name, child in properties.items()},
        load_items=_node(items),
        load_additional=_node(additional if isinstance(additional, Mapping) else ({} if additional else None)),
        required=tuple(source.get("required") or ()),
        description=source.get("description", ""),
        go_type=_JSON_NAMES.get(source.get("type", ""), source.get("type", "")),
        format=source.get("format", ""),
        list_type=source.get("x-kubernetes-list-type", ""),
        list_keys=tuple(source.get("x-kubernetes-list-map-keys") or ()),
        map_type=source.get("x-kubernetes-map-type", ""),
        int_or_string=bool(source.get("x-kubernetes-int-or-string")),
        nullable=bool(source.get("nullable")),
        preserve_unknown=bool(source.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(source.get("x-kubernetes-embedded-resource")),
        has_default="default" in source,
        default=source.get("default"),
        constraints={key: source[key] for key in _VALIDATED if key in source},
        rules=tuple(source.get("x-kubernetes-validations") or ()),
        source=source,
    )


def _node(source: Mapping[str, Any] | None) -> Callable[[], Schema | None]:
    return lambda: None if source is None else from_openapi(source)
