"""resource-strategy-fit (spec 06 section 23)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stromboli.api import core
from tests.scheduler.plugins.references.telling import Told, request, requested, room

TYPE, WEIGHTS = "volcano.sh/resource-strategy-scoring-type", "volcano.sh/resource-strategy-weight"
LEAST, MOST = "LeastAllocated", "MostAllocated"


@dataclass(frozen=True)
class StrategyFit:
    """The plugin's arguments, read."""

    weight: int = 10
    resources: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    scarce: Mapping[str, int] = field(default_factory=dict)
    scarce_weight: int = 0
    rates: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """cpu and memory are left for idle accelerators; one of which nothing is idle needs nothing."""
        if any(request(pod, name) > 0 for name in self.rates):
            return []
        for name, (cpu, memory) in self.rates.items():
            units = told.idle(node.name, name)
            if units <= 0:
                continue
            short = told.idle(node.name, "cpu") - request(pod, "cpu") < units * cpu
            if short or told.idle(node.name, "memory") - request(pod, "memory") < units * memory * 10**6:
                return [f"proportional of resource {name} check failed"]
        return []

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """One node after the other."""
        return {node.name: self._strategy(told, pod, node) + self._scarce(pod, node) for node in nodes}

    def _strategy(self, told: Told, pod: core.Pod, node: core.Node) -> float:
        total, weights = 0.0, 0
        for name in requested(pod):
            strategy = self._of_pod(pod, name) if TYPE in pod.metadata.annotations else self._of_policy(name)
            if strategy is None:
                continue
            kind, weight = strategy
            weights += weight
            capacity = room(node, name)
            if capacity == 0 or weight == 0:
                continue
            used = told.used(node.name, name) + request(pod, name)
            if used > capacity:
                return 0.0
            if kind == MOST:
                total += weight * used / capacity
            elif kind == LEAST:
                total += weight * (capacity - used) / capacity
            else:
                return 0.0
        return total / weights * 100 * self.weight if weights else 0.0

    def _of_policy(self, name: str) -> tuple[str, int] | None:
        given = self.resources or {"cpu": (LEAST, 1), "memory": (LEAST, 1)}
        if name in given:
            return given[name]
        fitting = [key for key in given if key.endswith("*") and name.startswith(key[:-1])]
        return given[max(fitting, key=len)] if fitting else None

    @staticmethod
    def _of_pod(pod: core.Pod, name: str) -> tuple[str, int] | None:
        try:
            weights = json.loads(pod.metadata.annotations.get(WEIGHTS, ""))
        except ValueError:
            return None
        return (pod.metadata.annotations[TYPE], weights[name]) if name in weights else None

    def _scarce(self, pod: core.Pod, node: core.Node) -> float:
        total = sum(self.scarce.values())
        if not total or self.scarce_weight <= 0 or any(room(node, name) == 0 for name in requested(pod)):
            return 0.0
        there = sum(weight for name, weight in self.scarce.items() if room(node, name) > 0)
        return (1 - there / total) * 100 * self.scarce_weight
