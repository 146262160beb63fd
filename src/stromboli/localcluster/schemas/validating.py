"""Validation of custom resources against their schema, with the real server's field paths, reasons and texts.

The walker is our own because clients read those texts, which general JSON-schema libraries word otherwise; it also
covers the Kubernetes extensions (int-or-string, nullable, list types).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

import orjson

from stromboli.localcluster.schemas.structural import from_openapi
from stromboli.localcluster.schemas.structure import Schema
from stromboli.localcluster.schemas.typing import json_type
from stromboli.localcluster.statuses import Cause

BLOCKING = {"FieldValueRequired", "FieldValueNotSupported", "FieldValueTypeInvalid", "FieldValueTooLong",
            "FieldValueTooMany"}  # fmt: skip
"""Reasons that keep CEL rules from being looked at."""

_TIME = re.compile(r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$")


def validate(schema: Schema, value: Any, path: str = "") -> list[Cause]:
    """Everything that is wrong with ``value``, outermost first."""
    return list(_check(schema, value, path))


def shown(value: Any) -> str:
    """A value as ``Invalid value: ...`` shows it."""
    return orjson.dumps(value).decode()


def bad(path: str, value: Any, why: str) -> Cause:
    """``Invalid value: VALUE: WHY``."""
    return Cause("FieldValueInvalid", path, f"Invalid value: {shown(value)}: {why}")


def missing(path: str, why: str = "") -> Cause:
    """``Required value`` with an optional explanation."""
    return Cause("FieldValueRequired", path, f"Required value: {why}" if why else "Required value")


def unsupported(path: str, value: Any, allowed: list[Any]) -> Cause:
    """``Unsupported value: VALUE: supported values: ...``."""
    listed = ", ".join(shown(one) for one in allowed)
    return Cause("FieldValueNotSupported", path, f"Unsupported value: {shown(value)}: supported values: {listed}")


def duplicate(path: str, value: Any) -> Cause:
    """``Duplicate value: VALUE``."""
    return Cause("FieldValueDuplicate", path, f"Duplicate value: {shown(value)}")


def _check(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    if value is None and (schema.nullable or not schema.type):
        return
    wrong = _wrong_type(schema, value, path)
    if wrong is not None:
        yield wrong
        return
    match value:
        case dict():
            yield from _fields(schema, value, path)
        case list():
            yield from _list(schema, value, path)
    yield from islice(_text_faults(schema, value, path), 1)
    for keyword, limit in schema.constraints.items():
        if keyword not in _OF_TEXTS:
            yield from _KEYWORDS[keyword](limit, value, path)


def _text_faults(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    """Faults of a text in the server's order; it tells the first."""
    for keyword in _OF_TEXTS:
        if keyword in schema.constraints:
            yield from _KEYWORDS[keyword](schema.constraints[keyword], value, path)


def _wrong_type(schema: Schema, value: Any, path: str) -> Cause | None:
    if schema.int_or_string:
        fits = isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
        wanted = "integer,string"
    else:
        wanted = schema.type
        fits = _fits(wanted, value)
    if fits:
        if schema.format and isinstance(value, str) and not _formatted(schema.format, value):
            wanted = schema.format
            return _type_invalid(path, value, f"{path} in body must be of type {wanted}: {shown(value)}")
        return None
    found = _type_name(value)
    return _type_invalid(path, found, f'{path} in body must be of type {wanted}: "{found}"')


def _type_invalid(path: str, value: Any, why: str) -> Cause:
    return Cause("FieldValueTypeInvalid", path, f"Invalid value: {shown(value)}: {why}")


def _fits(wanted: str, value: Any) -> bool:
    match wanted:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return not isinstance(value, bool) and (
                isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            )
        case "number":
            return not isinstance(value, bool) and isinstance(value, int | float)
        case _:
            return True


def _type_name(value: Any) -> str:
    match json_type(value):
        case "bool":
            return "boolean"
        case "number":
            return "integer" if isinstance(value, int) else "number"
        case name:
            return name


def _formatted(name: str, value: str) -> bool:
    match name:
        case "date-time":
            return bool(_TIME.match(value))
        case _:
            return True


def _fields(schema: Schema, value: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for name in schema.required:
        if name not in value:
            yield missing(_join(path, name))
    for name, item in value.items():
        if not path and name in ("metadata", "apiVersion", "kind"):
            continue
        child = schema.child(name)
        if child is not None:
            yield from _check(child, item, _join(path, name))


def _list(schema: Schema, value: list[Any], path: str) -> Iterator[Cause]:
    if schema.items is not None:
        for index, item in enumerate(value):
            yield from _check(schema.items, item, f"{path}[{index}]")
    if schema.list_type in ("set", "map"):
        yield from _repeated(schema, value, path)


def _repeated(schema: Schema, value: list[Any], path: str) -> Iterator[Cause]:
    seen: set[bytes] = set()
    for index, item in enumerate(value):
        key = item
        if schema.list_type == "map":
            if not isinstance(item, dict):
                continue
            key = {name: item[name] for name in schema.list_keys if name in item}
        encoded = orjson.dumps(key, option=orjson.OPT_SORT_KEYS)
        if encoded in seen:
            yield duplicate(f"{path}[{index}]", key)
        seen.add(encoded)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


# Keywords, by their name in the schema

Keyword = Callable[[Any, Any, str], Iterator[Cause]]
_OF_TEXTS = ("maxLength", "minLength", "pattern")


def _enum(allowed: list[Any], value: Any, path: str) -> Iterator[Cause]:
    if value not in allowed:
        yield unsupported(path, value, allowed)


def _pattern(pattern: str, value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, str) and not _compiled(pattern).search(value):
        yield bad(path, value, f"{path} in body should match '{pattern}'")


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _min_length(limit: int, value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, str) and len(value) < limit:
        yield bad(path, value, f"{path} in body should be at least {limit} chars long")


def _max_length(limit: int, value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, str) and len(value) > limit:
        yield Cause("FieldValueTooLong", path, f"Too long: may not be more than {limit} bytes")


def _bound(word: str, within: Callable[[Any, Any], bool]) -> Keyword:
    def check(limit: Any, value: Any, path: str) -> Iterator[Cause]:
        if isinstance(value, int | float) and not isinstance(value, bool) and not within(value, limit):
            yield bad(path, value, f"{path} in body should be {word} {limit}")

    return check


def _multiple_of(factor: Any, value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, int | float) and value % factor:
        yield bad(path, value, f"{path} in body should be a multiple of {factor}")


def _min_items(limit: int, value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, list) and len(value) < limit:
        yield bad(path, len(value), f"{path} in body should have at least {limit} items")


def _max_items(limit: int, value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, list) and len(value) > limit:
        yield Cause("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {limit} items")


def _unique_items(wanted: bool, value: Any, path: str) -> Iterator[Cause]:
    if wanted and isinstance(value, list) and len({shown(item) for item in value}) < len(value):
        yield bad(path, value, f"{path} in body shouldn't contain duplicates")


def _min_properties(limit: int, value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, dict) and len(value) < limit:
        yield bad(path, value, f"{path} in body should have at least {limit} properties")


def _max_properties(limit: int, value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, dict) and len(value) > limit:
        yield Cause("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {limit} items")


def _matching(schemas: list[Mapping[str, Any]], value: Any, path: str) -> int:
    return sum(not validate(from_openapi(schema), value, path) for schema in schemas)


def _any_of(schemas: list[Mapping[str, Any]], value: Any, path: str) -> Iterator[Cause]:
    if not _matching(schemas, value, path):
        yield bad(path, value, f'"{path}" must validate at least one schema (anyOf)')


def _one_of(schemas: list[Mapping[str, Any]], value: Any, path: str) -> Iterator[Cause]:
    if _matching(schemas, value, path) != 1:
        yield bad(path, value, f'"{path}" must validate one and only one schema (oneOf)')


def _all_of(schemas: list[Mapping[str, Any]], value: Any, path: str) -> Iterator[Cause]:
    for schema in schemas:
        yield from validate(from_openapi(schema), value, path)


def _not(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[Cause]:
    if not validate(from_openapi(schema), value, path):
        yield bad(path, value, f'"{path}" must not validate the schema (not)')


def _nothing(limit: Any, value: Any, path: str) -> Iterator[Cause]:
    return iter(())


_KEYWORDS: dict[str, Keyword] = {
    "enum": _enum,
    "pattern": _pattern,
    "minLength": _min_length,
    "maxLength": _max_length,
    "minimum": _bound("greater than or equal to", lambda value, limit: value >= limit),
    "maximum": _bound("less than or equal to", lambda value, limit: value <= limit),
    "exclusiveMinimum": _nothing,  # in OpenAPI v3.0 a flag beside minimum; no CRD of ours sets it
    "exclusiveMaximum": _nothing,
    "multipleOf": _multiple_of,
    "minItems": _min_items,
    "maxItems": _max_items,
    "uniqueItems": _unique_items,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "allOf": _all_of,
    "not": _not,
}
