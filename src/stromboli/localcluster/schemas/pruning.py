"""Unknown fields: dropped from the object, and reported as paths the way strict decoding words them."""

from __future__ import annotations

from typing import Any

from stromboli.localcluster.schemas.structure import Schema

_ROOT_FIELDS = ("apiVersion", "kind", "metadata")


def prune(schema: Schema, value: Any, path: str = "") -> list[str]:
    """Drop in place what ``schema`` does not know; the answer is the dropped paths, in document order.

    Places of a wrong type are left alone: validation reports them.
    """
    unknown: list[str] = []
    _prune(schema, value, path, unknown)
    return unknown


def _prune(schema: Schema, value: Any, path: str, unknown: list[str]) -> None:
    if isinstance(value, dict):
        _prune_fields(schema, value, path, unknown)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                _prune(schema.items, item, f"{path}[{index}]", unknown)


def _prune_fields(schema: Schema, value: dict[str, Any], path: str, unknown: list[str]) -> None:
    if not schema.properties and schema.additional is None and (schema.preserve_unknown or not schema.type):
        return
    properties, additional = schema.properties, schema.additional
    for name in list(value):
        child = properties.get(name, additional)
        if child is None:
            if schema.preserve_unknown or (schema.embedded and name in _ROOT_FIELDS):
                continue
            unknown.append(f"{path}.{name}" if path else name)
            del value[name]
        elif isinstance(value[name], (dict, list)):  # noqa: UP038 - half the time of a union, and this is hot
            _prune(child, value[name], f"{path}.{name}" if path else name, unknown)
