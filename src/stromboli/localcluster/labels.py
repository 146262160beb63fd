"""Label selectors as stored objects carry them, held against labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stromboli.api import core, selectors


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector matches: an absent one matches nothing, an empty one everything."""
    if selector is None:
        return False
    try:
        structured = core.from_builtins(core.LabelSelector, selector)
    except core.UndecodableObject:
        return False
    return selectors.matches_selector(structured, labels, absent=False)


def equals(selector: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    """Whether a plain map of labels (as Services have it) matches; an absent or empty one matches nothing."""
    return bool(selector) and all(labels.get(key) == value for key, value in (selector or {}).items())
