"""Defaults that a CRD's schema declares."""

from __future__ import annotations

import copy
from typing import Any

from stromboli.localcluster.schemas.structure import Schema


def fill(schema: Schema, value: Any) -> None:
    """Fill in place what is missing. A ``null`` that is not allowed counts as missing, as on the real server."""
    if isinstance(value, dict):
        _fill_fields(schema, value)
    elif isinstance(value, list) and schema.items is not None:
        for item in value:
            fill(schema.items, item)


def _fill_fields(schema: Schema, value: dict[str, Any]) -> None:
    for name, child in schema.properties.items():
        if name in value and value[name] is None and not child.nullable:
            if child.has_default:
                value[name] = copy.deepcopy(child.default)
        elif name not in value and child.has_default:
            value[name] = copy.deepcopy(child.default)
        if isinstance(value.get(name), dict | list):
            fill(child, value[name])
    if schema.additional is not None:
        for name, item in value.items():
            if name not in schema.properties:
                fill(schema.additional, item)


def drop_nulls(schema: Schema, value: Any) -> None:
    """Drop in place every ``null`` of a field that is not nullable (pruned by the real server after defaulting)."""
    if isinstance(value, list) and schema.items is not None:
        for item in value:
            drop_nulls(schema.items, item)
    if not isinstance(value, dict):
        return
    for name in list(value):
        child = schema.child(name)
        if child is None:
            continue
        if value[name] is None and not child.nullable and not child.preserve_unknown:
            del value[name]
        else:
            drop_nulls(child, value[name])
