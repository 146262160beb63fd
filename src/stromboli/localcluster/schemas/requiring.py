"""Required fields of built-in kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.localcluster.schemas.structure import Schema
from stromboli.localcluster.schemas.validating import missing
from stromboli.localcluster.statuses import Cause

_NOT_LOOKED_AT = ("apiVersion", "kind", "metadata", "status")


def check(schema: Schema, obj: dict[str, Any]) -> list[Cause]:
    """``Required value`` for everything a user has to write and did not; metadata and status have other rules."""
    visible = {name: value for name, value in obj.items() if name not in _NOT_LOOKED_AT}
    return [cause for cause in required(schema, visible, "") if cause.field not in _NOT_LOOKED_AT]


def required(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    """``Required value`` for texts and structs below ``value`` that the schema requires and Go would find empty.

    Numbers, booleans and lists are left out: their zero is a value to Go, and kinds check them where it matters.
    """
    if isinstance(value, dict) and not schema.preserve_unknown:
        for name in schema.required:
            child = schema.properties[name]
            if child.type in ("string", "object") and not child.is_map and value.get(name) in (None, ""):
                yield missing(f"{path}.{name}" if path else name)
        for name, item in value.items():
            below = schema.child(name)
            if below is not None and isinstance(item, dict | list):
                place = f"{path}[{name}]" if name not in schema.properties else f"{path}.{name}" if path else name
                yield from required(below, item, place)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from required(schema.items, item, f"{path}[{index}]")
