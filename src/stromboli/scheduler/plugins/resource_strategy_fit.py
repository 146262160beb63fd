"""resource-strategy-fit: fullest or emptiest node, resource by resource (spec 06 section 23).

Besides the strategy score there are two additions of their own: scarce resources are kept for those who ask for them
(``sra``), and cpu and memory are kept in proportion to idle accelerators (``proportional``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from stromboli.scheduler.core.columns import CPU, MEMORY, Floats
from stromboli.scheduler.core.plugin import Filter, Hooks, Plugin, Reach, Refusals, Score
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.plugins import arguments

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Task
    from stromboli.scheduler.core.tables import Bools, Rows
    from stromboli.scheduler.core.view import View

LEAST, MOST = "LeastAllocated", "MostAllocated"
TYPE_ANNOTATION = "volcano.sh/resource-strategy-scoring-type"
WEIGHT_ANNOTATION = "volcano.sh/resource-strategy-weight"
DEFAULT_WEIGHT = 10
FULL = 100.0
MILLION = 1e6


class Strategy(arguments.ArgumentsModel):
    """How one resource is scored."""

    type: arguments.Text = LEAST
    weight: arguments.Integer = 1


class ScarceResources(arguments.ArgumentsModel):
    """``sra``: nodes that have scarce resources are for those who ask for them."""

    enable: arguments.Boolean = False
    resources: arguments.Text = ""
    weight: arguments.Integer = 0
    resourceWeight: dict[str, arguments.Integer] = Field(default_factory=dict)  # noqa: N815 - as policies spell it

    def weights(self) -> dict[str, int]:
        """Weight by resource; nothing when it is not enabled."""
        listed = _listed(self.resources) if self.enable else []
        return {name: weight if (weight := self.resourceWeight.get(name, 1)) >= 0 else 1 for name in listed}


class Proportions(arguments.ArgumentsModel):
    """``proportional``: cpu (cores) and memory (gigabytes) to be kept for each idle unit of a resource."""

    enable: arguments.Boolean = False
    resources: arguments.Text = ""
    resourceProportion: dict[str, arguments.Number] = Field(default_factory=dict)  # noqa: N815 - as policies spell it

    def rates(self) -> dict[str, tuple[float, float]]:
        """Rates of cpu and memory by resource."""
        return {name: (self._rate(f"{name}.cpu"), self._rate(f"{name}.memory")) for name in _listed(self.resources)}

    def _rate(self, key: str) -> float:
        rate = self.resourceProportion.get(key, 1.0)
        return float(rate) if rate >= 0 else 1.0


class ResourceStrategyFitArguments(arguments.ArgumentsModel):
    """All arguments of the plugin."""

    resourceStrategyFitWeight: arguments.Integer = DEFAULT_WEIGHT  # noqa: N815 - as policies spell it
    resources: dict[str, Strategy] = Field(default_factory=dict)
    sra: ScarceResources = Field(default_factory=ScarceResources)
    proportional: Proportions = Field(default_factory=Proportions)


class Strategies:
    """Strategies by resource name, where a name may end in one ``*``."""

    def __init__(self, given: Mapping[str, Strategy]) -> None:
        known = given or {"cpu": Strategy(), "memory": Strategy()}
        self._exact = {name: _cleaned(one) for name, one in known.items() if "*" not in name}
        prefixes = {name[:-1]: _cleaned(one) for name, one in known.items() if is_prefix(name)}
        self._prefixes = sorted(prefixes.items(), key=lambda item: -len(item[0]))

    def of(self, resource: str) -> Strategy | None:
        """The exact entry, else that of the longest prefix."""
        exact = self._exact.get(resource)
        if exact is not None:
            return exact
        return next((strategy for prefix, strategy in self._prefixes if resource.startswith(prefix)), None)


def is_prefix(name: str) -> bool:
    """Whether a name stands for all that begin so: exactly one ``*``, at the end and not alone."""
    return len(name) > 1 and name.endswith("*") and name.count("*") == 1


def _cleaned(strategy: Strategy) -> Strategy:
    known = strategy.type if strategy.type in (LEAST, MOST) else LEAST
    return Strategy(type=known, weight=max(strategy.weight, 0) or 1)


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


class ResourceStrategyFit(Plugin):
    """Two scores and a filter, each only if it is configured."""

    name: ClassVar[str] = "resource-strategy-fit"
    shape_annotations = frozenset({TYPE_ANNOTATION, WEIGHT_ANNOTATION})
    arguments_model = ResourceStrategyFitArguments

    def open(self, view: View) -> Hooks:
        given = ResourceStrategyFitArguments.model_validate(dict(self.arguments))
        self._nodes, self._columns = view.nodes, view.columns
        weight = given.resourceStrategyFitWeight
        self._weight = weight if weight >= 0 else DEFAULT_WEIGHT
        self._strategies = Strategies(given.resources)
        self._scarce, self._scarce_weight = given.sra.weights(), given.sra.weight
        self._rates = given.proportional.rates() if given.proportional.enable else {}
        return Hooks(filters=self._filters(), scores=self._scores())

    def _scores(self) -> list[Score]:
        scores = []
        if self._weight > 0:
            scores.append(Score("resource strategy", self._rate, reach=Reach.STATE))
        if self._scarce and self._scarce_weight > 0:
            scores.append(Score("scarce resources", self._avoid_scarce, reach=Reach.STATE))
        return scores

    def _filters(self) -> list[Filter]:
        if not self._rates:
            return []
        reasons = [Reason(f"proportional of resource {name} check failed", Code.UNRESOLVABLE) for name in self._rates]
        return [Filter("proportional", reasons, self._refuse, reach=Reach.STATE)]

    # The strategy score

    def _rate(self, task: Task, rows: Rows) -> Floats:
        strategies = self._of_pod(task)
        score, weights, fits = np.zeros(len(rows)), 0, np.ones(len(rows), dtype=bool)
        for column, amount in task.shape.row_request:
            strategy = strategies.get(column)
            if strategy is None:
                continue
            room = self._nodes.allocatable[rows, column]
            used = self._nodes.used[rows, column] + amount
            counts = (room > 0.0) & (strategy.weight != 0)
            fits &= ~counts | (used <= room)
            part = {MOST: used, LEAST: room - used}.get(strategy.type, np.zeros(len(rows)))
            score += strategy.weight * np.divide(part, room, out=np.zeros(len(rows)), where=counts)
            weights += strategy.weight
        return np.where(fits, score / weights, 0.0) * FULL * self._weight if weights else score

    def _of_pod(self, task: Task) -> dict[int, Strategy]:
        """Strategies by column: the pod's own, if it has any, else the policy's."""
        names = {column: self._columns.names[column] for column, _ in task.shape.row_request}
        own = task.shape.annotations.get(TYPE_ANNOTATION)
        if own is None:
            found = {column: self._strategies.of(name) for column, name in names.items()}
            return {column: strategy for column, strategy in found.items() if strategy is not None}
        weights = _weights(task.shape.annotations.get(WEIGHT_ANNOTATION, ""))
        return {column: Strategy(type=own, weight=weights[name]) for column, name in names.items() if name in weights}

    # Scarce resources

    def _avoid_scarce(self, task: Task, rows: Rows) -> Floats:
        has = self._nodes.allocatable[rows] > 0.0
        useful = has[:, list(task.shape.requested)].all(axis=1)
        there, total = np.zeros(len(rows)), sum(self._scarce.values())
        for name, weight in self._scarce.items():
            column = self._columns.get(name)
            if column is not None:
                there += weight * has[:, column]
        if not total:
            return np.zeros(len(rows))
        return np.where(useful, 1.0 - there / total, 0.0) * FULL * self._scarce_weight

    # Proportions

    def _refuse(self, task: Task, rows: Rows) -> Refusals | None:
        """Tasks that do not ask for the resources must leave enough cpu and memory for them."""
        columns = {name: column for name in self._rates if (column := self._columns.get(name)) is not None}
        if any(task.request[column] > 0.0 for column in columns.values()):
            return None
        result = np.zeros(len(rows), dtype=np.uint8)
        for reason, name in enumerate(self._rates, start=1):
            if name in columns:
                result[(result == 0) & self._lacks(task, rows, columns[name], *self._rates[name])] = reason
        return result

    def _lacks(self, task: Task, rows: Rows, column: int, cpu_rate: float, memory_rate: float) -> Bools:
        idle = self._nodes.idle[rows]
        units = idle[:, column]
        cpu = idle[:, CPU] - task.request[CPU] < units * cpu_rate
        memory = idle[:, MEMORY] - task.request[MEMORY] < units * memory_rate * MILLION
        result: Bools = (units > 0.0) & (cpu | memory)
        return result


def _weights(text: str) -> dict[str, int]:
    """A pod's weights by resource; what is no JSON object of integers counts as none."""
    try:
        given = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(given, dict) or not all(type(weight) is int for weight in given.values()):
        return {}
    return given
