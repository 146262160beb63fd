"""Tables of left-justified columns without separators, trailing blanks kept, as spec 08 section 2 draws them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stromboli.kube.json import JsonObject


@dataclass(frozen=True)
class Column:
    """One column: a fixed ``width``, or ``gap`` blanks more than the longest value and ``at_least``."""

    title: str
    cell: Callable[[JsonObject], str]
    width: int = 0
    gap: int = 0
    at_least: int = 0


class Layout:
    """Columns with the widths that a set of objects asks for; longer values shift their row, and are never cut.

    What is shifted keeps a blank before it, so that a long name does not run into the number that follows.
    """

    def __init__(self, columns: Sequence[Column], objects: Sequence[JsonObject]) -> None:
        self._columns = columns
        self._widths = [column.width or _fitting(column, objects) for column in columns]

    def header(self) -> str:
        """The line of titles."""
        return self._line([column.title for column in self._columns])

    def row(self, obj: JsonObject) -> str:
        """The line of one object."""
        return self._line([column.cell(obj) for column in self._columns])

    def _line(self, cells: Sequence[str]) -> str:
        line = ""
        for cell, width in zip(cells, self._widths, strict=True):
            apart = line[-1:].strip() and cell[:1].strip()
            line += f"{' ' if apart else ''}{cell:<{width}}"
        return line


def _fitting(column: Column, objects: Sequence[JsonObject]) -> int:
    return max([column.at_least, *(len(column.cell(obj)) for obj in objects)]) + column.gap
