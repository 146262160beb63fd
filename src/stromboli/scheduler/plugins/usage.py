"""usage: nodes by their measured load (spec 06 section 18)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stromboli.scheduler.core import loads, policy
from stromboli.scheduler.core.plugin import Filter, Hooks, Plugin, Reach, Refusals, Score
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.plugins import arguments

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View

CPU_LOAD = Reason("the CPU load of the node exceeds the upper limit.", Code.UNRESOLVABLE)
MEMORY_LOAD = Reason("the memory load of the node exceeds the upper limit.", Code.UNRESOLVABLE)
DEFAULT_THRESHOLD = 80
FRESH_SECONDS = 300.0


class Thresholds(arguments.ArgumentsModel):
    """Percentages above which a node takes nothing."""

    cpu: arguments.Integer = DEFAULT_THRESHOLD
    mem: arguments.Integer = DEFAULT_THRESHOLD


class Usage(Plugin):
    """Refuses loaded nodes and prefers idle ones. Nodes without fresh measurements are neither refused nor scored."""

    name: ClassVar[str] = "usage"
    arguments_model = arguments.model(
        "UsageArguments",
        usage__weight=arguments.Integer,
        cpu__weight=arguments.Integer,
        memory__weight=arguments.Integer,
        thresholds=Thresholds,
    )

    def open(self, view: View) -> Hooks:
        self._weight = policy.integer(self.arguments, "usage.weight", 5)
        self._cpu_weight = policy.integer(self.arguments, "cpu.weight", 1)
        self._memory_weight = policy.integer(self.arguments, "memory.weight", 1)
        self._read_thresholds()
        self._read_loads(view)
        return Hooks(
            filters=[Filter("load", [CPU_LOAD, MEMORY_LOAD], self._refuse, reach=Reach.NODE)],
            scores=[Score("usage", self._rate, reach=Reach.NODE)] if self._total_weight else [],
        )

    @property
    def _total_weight(self) -> int:
        return self._cpu_weight + self._memory_weight

    def _read_thresholds(self) -> None:
        given = self.arguments.get("thresholds")
        thresholds = given if isinstance(given, Mapping) else {}
        self._cpu_limit = policy.integer(thresholds, "cpu", DEFAULT_THRESHOLD)
        self._memory_limit = policy.integer(thresholds, "mem", DEFAULT_THRESHOLD)

    def _read_loads(self, view: View) -> None:
        """Percentages by row; NaN where there is no fresh measurement."""
        known = loads.of(view.options)
        self._cpu, self._memory = (np.full(view.nodes.count, np.nan) for _ in range(2))
        for row, node in enumerate(view.node_list):
            load = known.get(node.name) if node is not None else None
            if load is not None and view.now - load.time <= FRESH_SECONDS:
                self._cpu[row] = load.cpu.get(loads.PERIOD, 0.0)
                self._memory[row] = load.memory.get(loads.PERIOD, 0.0)

    def _refuse(self, _task: Task, rows: Rows) -> Refusals:
        cpu, memory = self._cpu[rows] > self._cpu_limit, self._memory[rows] > self._memory_limit
        return np.where(cpu, 1, np.where(memory, 2, 0)).astype(np.uint8)

    def _rate(self, _task: Task, rows: Rows) -> Floats:
        free = (100.0 - self._cpu[rows]) * self._cpu_weight + (100.0 - self._memory[rows]) * self._memory_weight
        score: Floats = np.nan_to_num(free / self._total_weight * self._weight)
        return score
