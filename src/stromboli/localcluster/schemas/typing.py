"""Types of built-in kinds: the first mismatch, worded as Go's JSON decoder words it."""

from __future__ import annotations

import re
from typing import Any

from stromboli.localcluster.schemas.structure import Schema

_QUANTITY = re.compile(r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$")
BAD_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_TIME = re.compile(r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$")
_RANGES = {"int32": 2**31, "int64": 2**63}


def mismatch(schema: Schema, value: Any) -> str | None:
    """What is wrong with the types in ``value``, or None. ``null`` fits everywhere, as in Go."""
    return _check(schema, value, "", "")


def _check(schema: Schema, value: Any, owner: str, path: str) -> str | None:
    if value is None or schema.preserve_unknown:
        return None
    if schema.int_or_string:
        return _int_or_string(value, schema, owner, path)
    match schema.type:
        case "object":
            return _object(schema, value, owner, path)
        case "array":
            return _array(schema, value, owner, path)
        case _:
            return _scalar(schema, value, owner, path)


def _object(schema: Schema, value: Any, owner: str, path: str) -> str | None:
    if not isinstance(value, dict):
        return _wrong(value, schema.go_type, owner, path)
    if schema.additional is not None:
        return _map(schema.additional, value, owner, path)
    name = ""
    for key, item in value.items():
        child = schema.properties.get(key)
        if child is None or (type(item) is str and child.plain_text):
            continue
        name = name or schema.go_type.rpartition(".")[2]
        problem = _check(child, item, name, f"{path}.{key}" if path else key)
        if problem:
            return problem
    return None


def _map(schema: Schema, value: dict[str, Any], owner: str, path: str) -> str | None:
    for item in value.values():
        if type(item) is str and schema.plain_text:
            continue
        problem = _check(schema, item, owner, path)
        if problem:
            return problem
    return None


def _array(schema: Schema, value: Any, owner: str, path: str) -> str | None:
    if not isinstance(value, list):
        return _wrong(value, schema.go_type, owner, path)
    if schema.items is None:
        return None
    for item in value:
        problem = _check(schema.items, item, owner, path)
        if problem:
            return problem
    return None


def _scalar(schema: Schema, value: Any, owner: str, path: str) -> str | None:
    if schema.quantity:
        return _quantity(value)
    if schema.format == "date-time":
        return _time(value, owner, path)
    match schema.type:
        case "string":
            fits = isinstance(value, str)
        case "boolean":
            fits = isinstance(value, bool)
        case "integer":
            return _integer(schema, value, owner, path)
        case "number":
            fits = isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            fits = True
    return None if fits else _wrong(value, schema.go_type, owner, path)


def _integer(schema: Schema, value: Any, owner: str, path: str) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _wrong(value, schema.go_type, owner, path)
    limit = _RANGES[schema.go_type]
    if value != int(value) or not -limit <= value < limit:
        return _wrong(value, schema.go_type, owner, path, shown=f"number {value}")
    return None


def _int_or_string(value: Any, schema: Schema, owner: str, path: str) -> str | None:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return None
    return _wrong(value, "int32" if not isinstance(value, dict | list) else schema.go_type, owner, path)


def _quantity(value: Any) -> str | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return None
    return None if isinstance(value, str) and _QUANTITY.match(value) else BAD_QUANTITY


def _time(value: Any, owner: str, path: str) -> str | None:
    if not isinstance(value, str):
        return _wrong(value, "string", owner, path)
    if value == "" or _TIME.match(value):
        return None
    return f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "{value}" as "2006"'


def _wrong(value: Any, wanted: str, owner: str, path: str, shown: str = "") -> str:
    place = f"Go struct field {owner}.{path}" if path else "Go value"
    return f"json: cannot unmarshal {shown or json_type(value)} into {place} of type {wanted}"


def json_type(value: Any) -> str:
    """The JSON type of a value as Go names it."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
