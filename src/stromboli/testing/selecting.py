"""Label and field selectors as query parameters carry them, for the fake API server.

Equality and set requirements on labels; equality on any dotted field path. Missing fields compare as empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Predicate: TypeAlias = Callable[[Mapping[str, Any]], bool]

_SET = re.compile(r"^\s*(\S+)\s+(in|notin)\s*\(([^)]*)\)\s*$")
_EQUALITY = re.compile(r"^([^=!]+?)\s*(==|=|!=)\s*(.*)$")
_COMMA_OUTSIDE_PARENTHESES = re.compile(r",(?![^(]*\))")


def predicate(label_selector: str, field_selector: str) -> Predicate:
    """Whether an object matches both selectors. Empty selectors match everything."""
    labels = [_label_requirement(term) for term in _COMMA_OUTSIDE_PARENTHESES.split(label_selector) if term.strip()]
    fields = [_field_requirement(term) for term in field_selector.split(",") if term.strip()]

    def matches(obj: Mapping[str, Any]) -> bool:
        found = (obj.get("metadata") or {}).get("labels") or {}
        return all(test(found) for test in labels) and all(test(obj) for test in fields)

    return matches


def _label_requirement(term: str) -> Predicate:
    if found := _SET.match(term):
        key, wants_in = found[1], found[2] == "in"
        values = {value.strip() for value in found[3].split(",")}
        return lambda labels: (labels.get(key) in values) == wants_in
    if found := _EQUALITY.match(term.strip()):
        key, wants_equal, value = found[1], found[2] != "!=", found[3].strip()
        return lambda labels: (labels.get(key) == value) == wants_equal
    if term.strip().startswith("!"):
        absent = term.strip()[1:].strip()
        return lambda labels: absent not in labels
    present = term.strip()
    return lambda labels: present in labels


def _field_requirement(term: str) -> Predicate:
    found = _EQUALITY.match(term.strip())
    if not found:
        raise ValueError(f"not a field selector: {term!r}")
    path, wants_equal, value = found[1].split("."), found[2] != "!=", found[3].strip()
    return lambda obj: (_at(obj, path) == value) == wants_equal


def _at(obj: Mapping[str, Any], path: list[str]) -> str:
    here: Any = obj
    for part in path:
        here = here.get(part) if isinstance(here, Mapping) else None
    if isinstance(here, bool):
        return str(here).lower()
    return "" if here is None else str(here)
