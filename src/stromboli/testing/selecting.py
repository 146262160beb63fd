"""Label and field selectors as query parameters carry them, for the fake API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from stromboli.api.selectors import LabelSelector, parse_field_selector

Predicate: TypeAlias = Callable[[Mapping[str, Any]], bool]


def predicate(label_selector: str, field_selector: str) -> Predicate:
    """Whether an object matches both selectors; empty ones match everything. Raises ``BadSelector``."""
    labels, fields = LabelSelector.parse(label_selector), parse_field_selector(field_selector)

    def matches(obj: Mapping[str, Any]) -> bool:
        return labels.matches((obj.get("metadata") or {}).get("labels") or {}) and fields.matches(obj)

    return matches
