"""The form of a table: columns with a function for each cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from stromboli.localcluster.storage import Object
from stromboli.localcluster.tables.times import age

Cell = str | int | bool | float | None
Show = Callable[[Object, datetime], Cell]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column; ``wide`` ones show with ``-o wide`` only."""

    name: str
    show: Show
    type: str = "string"
    format: str = ""
    description: str = ""
    wide: bool = False

    def to_wire(self) -> Object:
        """The entry of ``columnDefinitions``."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or f"{self.name}.",
            "priority": 1 if self.wide else 0,
        }


def name_column() -> TableColumn:
    """The first column of every table."""
    return TableColumn("Name", lambda obj, now: obj["metadata"]["name"], format="name",
                       description="Name must be unique within a namespace.")  # fmt: skip


def age_column() -> TableColumn:
    """Time since creation."""
    return TableColumn("Age", lambda obj, now: age(obj["metadata"].get("creationTimestamp"), now),
                       description="CreationTimestamp is the server time when this object was created.")  # fmt: skip


def columns(*middle: TableColumn, last: Sequence[TableColumn] = (), aged: bool = True) -> tuple[TableColumn, ...]:
    """Name, the given columns, Age, and the wide ones."""
    return (name_column(), *middle, *([age_column()] if aged else []), *last)
