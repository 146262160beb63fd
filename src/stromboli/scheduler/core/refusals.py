"""Refusals of nodes: the answers of filters, and counting them by reason (spec 04 sections 27.5 and 31.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stromboli.scheduler.core.plugin import Filter, Reach, Refusals
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.records import Task
from stromboli.scheduler.core.tables import Bools, Rows

NOT_IN_SHARD = Reason("node isn't in scheduler node shard", Code.ERROR)


@dataclass(slots=True)
class Asked:
    """A filter with its answers: per row 0, or 1 + the index of its reason."""

    filter: Filter
    refusals: Refusals


@dataclass(slots=True)
class Group:
    """The filters of one plugin: those whose answers are kept, then those that must be asked every time."""

    kept: list[Asked]
    fresh: list[Filter]


class Tally:
    """Counts reasons: a row refused by one plugin is not shown to the next."""

    def __init__(self, rows: Rows, count: int) -> None:
        self._rows = rows
        self._open = np.ones(len(rows), dtype=bool)
        self.counts: dict[str, int] = {}
        self.unresolvable: Bools = np.zeros(count, dtype=bool)

    @property
    def refused_count(self) -> int:
        """Rows refused by anything."""
        return int(len(self._rows) - self._open.sum())

    def refuse(self, refusals: npt.NDArray[np.integer], reasons: list[Reason]) -> None:
        """One plugin with a single filter; ``refusals`` go with the rows."""
        self._record(np.where(self._open, refusals, 0), reasons)
        self._open &= refusals == 0

    def ask(self, group: Group, task: Task) -> None:
        """One plugin's filters, in order; plain refusals accumulate, others end the plugin's turn for the row."""
        said: list[tuple[Filter, npt.NDArray[np.integer]]] = []
        going_on = self._open.copy()
        for filter_, answers in self._answers(group, task):
            refusals = np.where(going_on, answers, 0)
            aborted = aborting(refusals, filter_.reasons)
            if filter_.alone:
                for _, earlier in said:
                    earlier[aborted] = 0
            said.append((filter_, refusals))
            going_on &= ~aborted
        for filter_, refusals in said:
            self._record(refusals, filter_.reasons)
            self._open &= refusals == 0

    def _answers(self, group: Group, task: Task) -> Iterator[tuple[Filter, Refusals]]:
        for one in group.kept:
            yield one.filter, one.refusals[self._rows]
        for filter_ in group.fresh:
            answers = filter_.refuse(task, self._rows)
            if answers is not None:
                yield filter_, answers

    def _record(self, refusals: npt.NDArray[np.integer], reasons: Iterable[Reason]) -> None:
        if not refusals.any():
            return
        found = np.bincount(refusals)
        for index, reason in enumerate(reasons, start=1):
            if index < len(found) and found[index]:
                if reason.text:
                    self.counts[reason.text] = self.counts.get(reason.text, 0) + int(found[index])
                if reason.code == Code.UNRESOLVABLE:
                    self.unresolvable[self._rows[refusals == index]] = True


def aborting(refusals: npt.NDArray[np.integer], reasons: Iterable[Reason]) -> Bools:
    """Where a refusal ends its plugin's turn: eviction does not help there either."""
    aborts = np.array([False, *(reason.code.aborts for reason in reasons)])
    result: Bools = aborts[refusals]
    return result


def shard_filter() -> Filter:
    """Stands for nodes of other shards, in hard mode; its answers do not change within a cycle."""
    return Filter("shard", [NOT_IN_SHARD], lambda task, rows: None, reach=Reach.NODE)
