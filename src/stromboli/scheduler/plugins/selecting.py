"""Node selectors over many nodes at once: label values become integer columns (spec 06 section 17.3).

A :class:`NodeLabels` belongs to one cycle. It reads the labels of all nodes under a key the first time the key is asked
for, so that the next shape with the same key costs one array operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from stromboli.api import core
    from stromboli.scheduler.core.records import Node
    from stromboli.scheduler.core.tables import Bools, Rows

ABSENT = -1
NAME_FIELD = "metadata.name"
Codes = npt.NDArray[np.intp]


class NodeLabels:
    """Answers which rows match selectors."""

    def __init__(self, node_list: Sequence[Node | None]) -> None:
        self._nodes = node_list
        self._columns: dict[str, tuple[Codes, dict[str, int]]] = {}

    def column(self, key: str) -> tuple[Codes, dict[str, int]]:
        """Per row the code of the label's value (ABSENT without the label), and the code of each value."""
        found = self._columns.get(key)
        if found is None:
            codes: dict[str, int] = {}
            rows = [self._code(node, key, codes) for node in self._nodes]
            found = self._columns[key] = (np.array(rows, dtype=np.intp), codes)
        return found

    def admits(self, spec: core.PodSpec, rows: Rows) -> Bools:
        """Rows that a pod's node selector and required node affinity admit."""
        result = self.matches_pairs(spec.node_selector, rows)
        required = required_selector(spec)
        if required is not None:
            result &= self.matches_any(required.node_selector_terms, rows)
        return result

    def matches_pairs(self, pairs: dict[str, str], rows: Rows) -> Bools:
        """Rows whose labels include every pair."""
        result = np.ones(len(rows), dtype=bool)
        for key, value in pairs.items():
            codes, by_value = self.column(key)
            result &= codes[rows] == by_value.get(value, ABSENT - 1)
        return result

    def matches_any(self, terms: Iterable[core.NodeSelectorTerm], rows: Rows) -> Bools:
        """Rows that match at least one term; without terms none does."""
        result = np.zeros(len(rows), dtype=bool)
        for term in terms:
            result |= self.matches_term(term, rows)
        return result

    def matches_term(self, term: core.NodeSelectorTerm, rows: Rows) -> Bools:
        """Rows that match every requirement of a term; an empty or unreadable term matches nothing."""
        if not term.match_expressions and not term.match_fields:
            return np.zeros(len(rows), dtype=bool)
        result = np.ones(len(rows), dtype=bool)
        for requirement in term.match_expressions:
            result &= self._matches(requirement, rows)
        for requirement in term.match_fields:
            result &= self._matches_field(requirement, rows)
        return result

    def _matches(self, requirement: core.Requirement, rows: Rows) -> Bools:
        codes, by_value = self.column(requirement.key)
        mine = codes[rows]
        match requirement.operator:
            case "Exists":
                return np.asarray(mine != ABSENT)
            case "DoesNotExist":
                return np.asarray(mine == ABSENT)
            case "In":
                return np.isin(mine, [by_value[value] for value in requirement.values if value in by_value])
            case "NotIn":
                return ~np.isin(mine, [by_value[value] for value in requirement.values if value in by_value])
            case "Gt" | "Lt":
                return self._compares(requirement, mine, by_value)
            case _:
                return np.zeros(len(rows), dtype=bool)

    def _compares(self, requirement: core.Requirement, mine: Codes, by_value: dict[str, int]) -> Bools:
        bound = _integer(requirement.values[0]) if len(requirement.values) == 1 else None
        if bound is None:
            return np.zeros(len(mine), dtype=bool)
        above = requirement.operator == "Gt"
        good = [
            code
            for value, code in by_value.items()
            if (number := _integer(value)) is not None and (number > bound if above else number < bound)
        ]
        return np.isin(mine, good)

    def _matches_field(self, requirement: core.Requirement, rows: Rows) -> Bools:
        if requirement.key != NAME_FIELD or len(requirement.values) != 1 or requirement.operator not in ("In", "NotIn"):
            return np.zeros(len(rows), dtype=bool)
        wanted = requirement.values[0]
        same = np.array([(node := self._nodes[row]) is not None and node.name == wanted for row in rows], dtype=bool)
        return same if requirement.operator == "In" else ~same

    @staticmethod
    def _code(node: Node | None, key: str, codes: dict[str, int]) -> int:
        value = None if node is None else node.labels.get(key)
        return ABSENT if value is None else codes.setdefault(value, len(codes))


def required_selector(spec: core.PodSpec) -> core.NodeSelector | None:
    """The pod's required node affinity, if it has any."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
