"""Label selectors as API objects carry them (``matchLabels`` and ``matchExpressions``), read without ceremony."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector matches: an absent one matches nothing, an empty one everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression(expression, labels) for expression in selector.get("matchExpressions") or ())


def equals(selector: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    """Whether a plain map of labels (as Services have it) matches; an absent or empty one matches nothing."""
    return bool(selector) and all(labels.get(key) == value for key, value in (selector or {}).items())


def _expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key: str = expression["key"]
    values: Sequence[str] = expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False
