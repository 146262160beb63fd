"""Quantities in canonical form (``1000m`` is stored as ``1``), as the real server's decoding leaves them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from stromboli.api import quantities
from stromboli.localcluster.schemas.structure import Schema


def canonicalize(schema: Schema, value: Any) -> None:
    """Rewrite in place every quantity below ``value``; texts that are no quantities are left for type checks."""
    if isinstance(value, dict):
        for name, item in value.items():
            child = schema.child(name)
            if child is not None:
                value[name] = _canonical(child, item)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            value[index] = _canonical(schema.items, item)


def _canonical(schema: Schema, value: Any) -> Any:
    if schema.quantity:
        return value if value is None else _text(value)
    if isinstance(value, dict | list):
        canonicalize(schema, value)
    return value


@lru_cache(maxsize=4096)
def _text(quantity: str | int | float) -> str:
    try:
        return quantities.canonical(quantity)
    except quantities.BadQuantity:
        return str(quantity)
