"""The columns of custom resources, as their definition declares them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from stromboli.localcluster.catalog import Column
from stromboli.localcluster.storage import Object
from stromboli.localcluster.tables.columns import Cell, TableColumn, age_column, name_column
from stromboli.localcluster.tables.jsonpaths import find
from stromboli.localcluster.tables.times import age


def columns_of(declared: tuple[Column, ...]) -> tuple[TableColumn, ...]:
    """Name and the declared columns; Name and Age when none are declared."""
    if not declared:
        return (name_column(), age_column())
    return (name_column(), *(_column(one) for one in declared))


def _column(declared: Column) -> TableColumn:
    def show(obj: Object, now: datetime) -> Cell:
        found = find(obj, declared.json_path)
        if not found or found[0] is None:
            return None
        return age(found[0], now) if declared.type == "date" else _cell(declared.type, found)

    standard = f"Custom resource definition column (in JSONPath format): {declared.json_path}"
    return TableColumn(
        declared.name,
        show,
        declared.type,
        declared.format,
        declared.description or standard,
        wide=declared.priority > 0,
    )


def _cell(kind: str, found: list[Any]) -> Cell:
    if kind in ("integer", "number", "boolean"):
        value = found[0]
        return value if isinstance(value, int | float) else None
    if len(found) > 1:
        return " ".join(_text(value) for value in found)
    return _text(found[0])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
