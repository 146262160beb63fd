"""JSON merge patch (RFC 7386)."""

from __future__ import annotations

from typing import Any


def merged(present: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """``present`` with ``patch`` merged in: ``null`` deletes, objects merge, everything else replaces."""
    result = dict(present)
    for name, wanted in patch.items():
        if wanted is None:
            result.pop(name, None)
        elif isinstance(wanted, dict):
            below = result.get(name)
            result[name] = merged(below if isinstance(below, dict) else {}, wanted)
        else:
            result[name] = wanted
    return result
