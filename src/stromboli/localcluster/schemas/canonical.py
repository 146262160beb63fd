"""What decoding into Go's types does on the way: quantities in canonical form (``1000m`` is ``1``), nulls left out."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from stromboli.api import quantities
from stromboli.localcluster.schemas.structure import Schema


def canonicalize(schema: Schema, value: Any) -> None:
    """Rewrite in place every quantity below ``value`` and drop nulls; type checks come before."""
    if isinstance(value, dict):
        for name, item in list(value.items()):
            child = schema.child(name)
            if item is None and not schema.preserve_unknown:
                del value[name]
            elif child is not None:
                value[name] = _canonical(child, item)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            value[index] = _canonical(schema.items, item)


def _canonical(schema: Schema, value: Any) -> Any:
    if schema.quantity:
        return _text(value)
    if isinstance(value, dict | list):
        canonicalize(schema, value)
    return value


@lru_cache(maxsize=4096)
def _text(quantity: str | int | float) -> str:
    try:
        return quantities.canonical(quantity)
    except quantities.BadQuantity:
        return str(quantity)


def tidy_metadata(metadata: dict[str, Any]) -> None:
    """Drop in place what Go leaves out when it is empty: maps, lists and texts."""
    for name, value in list(metadata.items()):
        if value in (None, "", {}, []):
            del metadata[name]
