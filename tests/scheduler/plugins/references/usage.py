"""usage (spec 06 section 18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stromboli.api import core
from tests.scheduler.plugins.references.telling import Told


@dataclass
class Usage:
    """The plugin's arguments, and what is measured: seconds since then, cpu and memory in percent."""

    weight: int = 5
    cpu_weight: int = 1
    memory_weight: int = 1
    cpu_limit: int = 80
    memory_limit: int = 80
    measured: dict[str, tuple[float, float, float]] = field(default_factory=dict)

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """Over the limit, cpu first; numbers of more than five minutes ago do not count."""
        load = self._fresh(node)
        if load is None:
            return []
        if load[0] > self.cpu_limit:
            return ["the CPU load of the node exceeds the upper limit."]
        return ["the memory load of the node exceeds the upper limit."] if load[1] > self.memory_limit else []

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """One node after the other."""
        return {node.name: self._score(node) for node in nodes}

    def _score(self, node: core.Node) -> float:
        load, both = self._fresh(node), self.cpu_weight + self.memory_weight
        if load is None or both == 0:
            return 0.0
        cpu, memory = load
        parts = (100 - cpu) / 100 * self.cpu_weight + (100 - memory) / 100 * self.memory_weight
        return parts / both * 100 * self.weight

    def _fresh(self, node: core.Node) -> tuple[float, float] | None:
        age, cpu, memory = self.measured.get(node.name, (float("inf"), 0.0, 0.0))
        return None if age > 5 * 60 else (cpu, memory)
