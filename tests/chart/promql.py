"""What a PromQL expression asks for: series with the labels it uses, and functions. Enough for the chart's own."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CLAUSE = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_SELECTOR = re.compile(r"([A-Za-z_:][\w:]*)\s*(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'\s*(\w+)\s*(?:=~|!~|!=|=)\s*"[^"]*"\s*')
_RANGE = re.compile(r"\[[^\]]*\]")
_WORDS = frozenset({"and", "or", "unless", "bool"})


@dataclass(frozen=True, slots=True)
class Query:
    """What is read: labels matched by series, labels grouped by, and functions called."""

    series: dict[str, frozenset[str]]
    grouping: frozenset[str]
    functions: frozenset[str]


def read(expression: str) -> Query:
    """Take an expression apart. Raises ValueError for a matcher that is none."""
    grouping = {label.strip() for clause in _CLAUSE.findall(expression) for label in clause.split(",")}
    rest = _RANGE.sub("", _CLAUSE.sub(" ", expression))
    series: dict[str, frozenset[str]] = {}
    functions = set()
    for found in _SELECTOR.finditer(rest):
        name, matchers = found.groups()
        if rest[found.end() :].lstrip().startswith("("):
            functions.add(name)
        elif name not in _WORDS:
            series[name] = series.get(name, frozenset()) | _matched(matchers or "")
    return Query(series, frozenset(grouping), frozenset(functions) - _WORDS)


def _matched(matchers: str) -> frozenset[str]:
    labels = set()
    for matcher in filter(str.strip, matchers.split(",")):
        found = _MATCHER.fullmatch(matcher)
        if found is None:
            raise ValueError(f"{matcher!r} is no matcher")
        labels.add(found[1])
    return frozenset(labels)
