"""Schemas of built-in kinds, read at run time from the generated client models that are installed anyway.

The models carry field names, types, documentation and (in the constants of their setters) which fields are required;
the table of Protobuf messages adds which texts are quantities and how wide integers are.
Nodes are made per class on first use, so that a server start reads none of the seven hundred classes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from stromboli.api.kinds import Kind
from stromboli.localcluster.protobuf.messages import wire_types
from stromboli.localcluster.schemas.merging import (
    ATOMIC_MAPS,
    ATOMIC_TYPES,
    RETAINED_STRUCTS,
    merging_of,
)
from stromboli.localcluster.schemas.structure import ANYTHING, Schema

_CLASS = re.compile(r"^(?:[A-Z][a-z]+)*?V(\d+(?:(?:alpha|beta)\d+)?)([A-Z]\w*)$")
_LIST = re.compile(r"^list\[(.*)\]$")
_MAP = re.compile(r"^dict\(str, (.*)\)$")
_DOCUMENTATION = re.compile(r"\n\n\s*(.*?)\s*(?:# noqa: E501)?\s*\n\n\s*:return", re.DOTALL)
_QUANTITY, _INT_OR_STRING = "resource.Quantity", "intstr.IntOrString"
_REQUIRED = "must not be `None`"


def schema_of(kind: Kind, model: str) -> Schema:
    """Schema of a built-in kind from its model class; raises LookupError when the models lack it."""
    return _struct(model)


@cache
def _struct(model: str) -> Schema:
    cls = _class(model)
    version, name = _split(model)
    return Schema(
        type="object",
        load_properties=lambda: _properties(cls, name),
        required=_required(cls),
        title=model,
        go_type=f"v{version}.{name}",
        map_type="atomic" if name in ATOMIC_TYPES else "",
    )


def _class(model: str) -> Any:
    # A late import: half a second that a start without any write need not pay.
    from kubernetes_asyncio.client import models

    found = getattr(models, model, None)
    if found is None:
        raise LookupError(f"the installed client models have no {model}")
    return found


def _split(model: str) -> tuple[str, str]:
    match = _CLASS.match(model)
    return (match[1], match[2]) if match else ("", model)


def _required(cls: Any) -> tuple[str, ...]:
    return tuple(
        wire
        for attribute, wire in cls.attribute_map.items()
        if any(isinstance(text, str) and _REQUIRED in text for text in _setter_constants(cls, attribute))
    )


def _setter_constants(cls: Any, attribute: str) -> tuple[Any, ...]:
    setter = getattr(cls, attribute).fset
    return setter.__code__.co_consts if setter else ()


def _properties(cls: Any, owner: str) -> dict[str, Schema]:
    return {
        wire: _field(cls.openapi_types[attribute], owner, wire, _description(cls, attribute))
        for attribute, wire in cls.attribute_map.items()
    }


def _description(cls: Any, attribute: str) -> str:
    match = _DOCUMENTATION.search(getattr(cls, attribute).__doc__ or "")
    return match[1].strip() if match else ""


def _field(declared: str, owner: str, name: str, description: str) -> Schema:
    listed, mapped = _LIST.match(declared), _MAP.match(declared)
    if listed:
        return _list(listed[1], owner, name, description)
    if mapped:
        return _map(mapped[1], owner, name, description)
    if wire_types().get((owner, name)) == _QUANTITY:
        return Schema("string", quantity=True, description=description, go_type=_QUANTITY)
    scalar = _scalar(declared, owner, name, description)
    return scalar if scalar is not None else _reference(declared, owner, name, description)


def _list(item: str, owner: str, name: str, description: str) -> Schema:
    merging = merging_of(owner, name)
    inner = _field(item, owner, name, "")
    return Schema(
        "array",
        load_items=lambda: inner,
        description=description,
        go_type=f"[]{inner.go_type}",
        list_type="atomic" if merging is None else "map" if merging.keys else "set",
        list_keys=merging.keys if merging else (),
        merge_key=merging.strategic if merging else "",
        merge_strategy=merging.strategy if merging and (merging.strategic or not merging.keys) else "",
    )


def _map(value: str, owner: str, name: str, description: str) -> Schema:
    inner = _field(value, owner, name, "")
    return Schema(
        "object",
        load_additional=lambda: inner,
        description=description,
        go_type=f"map[string]{inner.go_type}",
        map_type="atomic" if (owner, name) in ATOMIC_MAPS else "",
    )


def _scalar(declared: str, owner: str, name: str, description: str) -> Schema | None:
    match declared:
        case "str":
            return Schema("string", description=description, go_type="string")
        case "bool":
            return Schema("boolean", description=description, go_type="bool")
        case "int":
            width = "int32" if wire_types().get((owner, name)) == "int32" else "int64"
            return Schema("integer", description=description, go_type=width, format=width)
        case "float":
            return Schema("number", description=description, go_type="float64", format="double")
        case "datetime":
            return Schema("string", description=description, go_type="v1.Time", format="date-time", nullable=True)
        case "object":
            if wire_types().get((owner, name)) == _INT_OR_STRING:
                return Schema(int_or_string=True, description=description, go_type="intstr.IntOrString")
            return Schema(preserve_unknown=True, description=description)
    return None


def _reference(declared: str, owner: str, name: str, description: str) -> Schema:
    target = _struct(declared)
    return Schema(
        "object",
        load_properties=lambda: target.properties,
        required=target.required,
        description=description,
        title=declared,
        go_type=target.go_type,
        map_type=target.map_type,
        merge_strategy="retainKeys" if (owner, name) in RETAINED_STRUCTS else "",
        preserve_unknown=declared == "V1JSONSchemaProps",
    )


def metadata_schema() -> Schema:
    """Schema of ``metadata``, the one part of custom resources that has a built-in type."""
    try:
        return _struct("V1ObjectMeta")
    except LookupError:
        return ANYTHING
