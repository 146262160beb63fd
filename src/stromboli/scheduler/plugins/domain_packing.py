"""How full HyperNodes are, and how full they would be with more (spec 06 section 25)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stromboli.scheduler.core import policy

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Columns, Floats
    from stromboli.scheduler.core.records import SubJob, Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View

PREFIX = "hypernode.binpack"


def column_weights(given: policy.Arguments, columns: Columns) -> dict[int, int]:
    """Weight by column: cpu, memory and the resources listed. Negative weights count as 1."""
    listed = [name.strip() for name in policy.text(given, f"{PREFIX}.resources", "").split(",")]
    keys = {name: f"{PREFIX}.resources.{name}" for name in listed if name}
    keys |= {"cpu": f"{PREFIX}.cpu", "memory": f"{PREFIX}.memory"}
    weights = {}
    for name, key in keys.items():
        column = columns.get(name)
        if column is not None:
            weight = policy.integer(given, key, 1)
            weights[column] = weight if weight >= 0 else 1
    return weights


class Packing:
    """Mean fullness over weighted columns; amounts are read from the node table as they are when asked."""

    def __init__(self, view: View, weights: Mapping[int, int]) -> None:
        self._nodes = view.nodes
        self._weights = weights

    def wanted(self, request: Floats) -> list[tuple[int, float, int]]:
        """The columns of a request that count: (column, amount, weight)."""
        return [(c, float(request[c]), weight) for c, weight in self._weights.items() if request[c] > 0.0]

    def of_rows(self, domains: Sequence[Rows], request: Floats) -> Floats:
        """Per domain how full it would be with the request; 0 where it does not fit, or nothing of it counts."""
        wanted = self.wanted(request)
        columns = [column for column, _, _ in wanted]
        allocatable, used = (
            sums(amounts, domains)[:, columns] for amounts in (self._nodes.allocatable, self._nodes.requested)
        )
        return self._fullness(allocatable, used, wanted)

    def by_code(self, codes: Rows, count: int, request: Floats) -> Floats:
        """As :meth:`of_rows` for domains given as a code for every row; rows with a negative code are in none."""
        wanted = self.wanted(request)
        rows = np.nonzero(codes >= 0)[0]
        sums = [
            [np.bincount(codes[rows], amounts[rows, column], minlength=count) for column, _, _ in wanted]
            for amounts in (self._nodes.allocatable, self._nodes.requested)
        ]
        allocatable, used = (np.array(each, dtype=np.float64).reshape(len(wanted), count).T for each in sums)
        return self._fullness(allocatable, used, wanted)

    @staticmethod
    def _fullness(allocatable: Floats, used: Floats, wanted: Sequence[tuple[int, float, int]]) -> Floats:
        total = sum(weight for _, _, weight in wanted)
        if total <= 0:
            return np.zeros(len(allocatable))
        then = used + np.array([amount for _, amount, _ in wanted])
        weights = np.array([weight for _, _, weight in wanted], dtype=np.float64)
        parts = np.divide(then, allocatable, out=np.zeros_like(then), where=allocatable > 0.0)
        fits = (then <= allocatable).all(axis=1)
        result: Floats = np.where(fits, (parts * weights).sum(axis=1) / total, 0.0)
        return result


def sums(amounts: Floats, domains: Sequence[Rows]) -> Floats:
    """Per domain the sum of the amounts of its rows."""
    totals = np.zeros((len(domains), amounts.shape[1]))
    filled = [at for at, rows in enumerate(domains) if len(rows)]
    if filled:
        starts = np.cumsum([0, *(len(domains[at]) for at in filled[:-1])])
        rows = np.concatenate([domains[at] for at in filled])
        totals[filled] = np.add.reduceat(amounts[rows], starts, axis=0)
    return totals


def requests(tasks: Iterable[Task], width: int) -> Floats:
    """What tasks request in all; tasks of a gang are much alike, so they are counted rather than added."""
    total = np.zeros(width)
    shapes = {}
    counts: dict[int, int] = {}
    for task in tasks:
        shape = task.shape
        counts[shape.index] = counts.get(shape.index, 0) + 1
        shapes[shape.index] = shape
    for index, count in counts.items():
        total += shapes[index].request * count
    return total


class LowestDomains:
    """The lowest HyperNode of every row, as codes: answers for all rows are then one look-up."""

    def __init__(self, view: View) -> None:
        known = view.hyper_nodes
        self._count = view.nodes.count
        self.names: list[str] = ["", *sorted(set(known.lowest_of_row.values()))]
        """By code; code 0 is that of rows in no HyperNode."""
        by_name = {name: code for code, name in enumerate(self.names)}
        self.codes: Rows = np.zeros(self._count, dtype=np.intp)
        for row, name in known.lowest_of_row.items():
            self.codes[row] = by_name[name]
        members = [known.rows[name] for name in self.names[1:]]
        self._members: Rows = np.concatenate(members) if members else np.empty(0, dtype=np.intp)
        self._starts = np.cumsum([0, *(len(rows) for rows in members[:-1])])
        self._real: Floats = np.array([float(bool(name)) for name in self.names])
        self._apart = len(np.unique(self._members)) == len(self._members)

    def parts_of(self, sub_job: SubJob) -> Floats:
        """By code, which part of the sub-job's tasks is in the HyperNode; 0 for no HyperNode."""
        parts = np.zeros(len(self.names))
        rows = [task.node.row for task in sub_job.tasks.values() if task.node is not None and task.node.row >= 0]
        if rows and self._apart:
            return np.bincount(self.codes[rows], minlength=len(self.names)) * self._real / len(sub_job.tasks)
        if rows and len(self.names) > 1:
            placed = np.bincount(rows, minlength=self._count)
            parts[1:] = np.add.reduceat(placed[self._members], self._starts) / len(sub_job.tasks)
        return parts
