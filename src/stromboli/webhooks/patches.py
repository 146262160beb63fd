"""JSON patches derived from an object before and after defaulting (RFC 6902).

Only ``add``, ``replace`` and ``remove``: short patches that a person can read in an audit log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypedDict

from stromboli.webhooks.shapes import JsonObject


class Operation(TypedDict, total=False):
    """One operation; ``value`` is absent for ``remove``."""

    op: str
    path: str
    value: Any


def derive(before: JsonObject, after: JsonObject) -> list[Operation]:
    """The operations that turn ``before`` into ``after``, in order; empty where they are equal."""
    return list(_operations(before, after, ""))


def _operations(before: Any, after: Any, path: str) -> Iterator[Operation]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _member_operations(before, after, path)
    elif isinstance(before, list) and isinstance(after, list) and len(before) <= len(after):
        yield from _element_operations(before, after, path)
    elif not _same(before, after):
        yield {"op": "replace", "path": path, "value": after}


def _member_operations(before: JsonObject, after: JsonObject, path: str) -> Iterator[Operation]:
    for name, value in after.items():
        place = f"{path}/{_escaped(name)}"
        if name in before:
            yield from _operations(before[name], value, place)
        else:
            yield {"op": "add", "path": place, "value": value}
    for name in before.keys() - after.keys():
        yield {"op": "remove", "path": f"{path}/{_escaped(name)}"}


def _element_operations(before: list[Any], after: list[Any], path: str) -> Iterator[Operation]:
    for index, value in enumerate(after):
        if index < len(before):
            yield from _operations(before[index], value, f"{path}/{index}")
        else:
            yield {"op": "add", "path": f"{path}/-", "value": value}


def _same(before: Any, after: Any) -> bool:
    # To Python 1, 1.0 and True are equal; to JSON they are three values.
    return type(before) is type(after) and before == after


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
