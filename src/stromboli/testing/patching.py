"""Patches for the fake API server: JSON merge patch (RFC 7386) and JSON patch (RFC 6902)."""

from __future__ import annotations

import copy
from typing import Any, cast

import jsonpatch
import orjson

from stromboli.kube.json import JsonObject


def merge(old: JsonObject, patch: JsonObject) -> JsonObject:
    """``old`` with ``patch`` merged in; ``None`` removes, lists are replaced."""
    return cast("JsonObject", _merge(copy.deepcopy(old), patch))


def apply(old: JsonObject, body: bytes) -> JsonObject:
    """``old`` after a JSON patch. ``ValueError`` when the patch does not apply."""
    try:
        return cast("JsonObject", jsonpatch.apply_patch(old, orjson.loads(body)))
    except jsonpatch.JsonPatchException as error:
        raise ValueError(f"the patch does not apply: {error}") from error


def _merge(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = old if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged
