"""From objects to the ``Table`` that kubectl prints."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from stromboli.localcluster.catalog import ServedKind
from stromboli.localcluster.storage import Object
from stromboli.localcluster.tables.builtin import BUILT_IN
from stromboli.localcluster.tables.columns import TableColumn, age_column, name_column
from stromboli.localcluster.tables.custom import columns_of

_DEFAULT = (name_column(), age_column())


def columns_for(served: ServedKind) -> tuple[TableColumn, ...]:
    """The columns of a kind; Name and Age when there is nothing better."""
    if served.columns is not None:
        return columns_of(served.columns)
    return BUILT_IN.get(served.kind, _DEFAULT)


def table(
    served: ServedKind,
    objects: Iterable[Object],
    metadata: Object,
    now: datetime,
    *,
    include: str = "Metadata",
    headed: bool = True,
    version: str = "v1",
) -> Object:
    """A table. ``include`` says what rows carry besides cells: ``Metadata``, ``Object`` or ``None``."""
    columns = columns_for(served)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": [column.to_wire() for column in columns] if headed else [],
        "rows": [_row(columns, obj, now, include, version) for obj in objects],
    }


def _row(columns: tuple[TableColumn, ...], obj: Object, now: datetime, include: str, version: str) -> Object:
    row: Object = {"cells": [column.show(obj, now) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{version}",
            "metadata": obj["metadata"],
        }
    return row
