"""Counting a job's pods: the counters of its status and what the next-phase rules need (spec 02 section 17.1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Count:
    """Pods by phase, in total and by task. Terminating pods are counted once, as terminating, and nowhere else."""

    phases: Counter[str] = field(default_factory=Counter)
    tasks: dict[str, Counter[str]] = field(default_factory=dict)
    terminating: int = 0

    def add(self, task: str, phase: str, number: int = 1) -> None:
        """Count ``number`` pods of ``task`` in ``phase``."""
        if number:
            self.phases[phase] += number
            counted = self.tasks.get(task)
            if counted is None:
                counted = self.tasks[task] = Counter()
            counted[phase] += number

    def add_terminating(self, number: int = 1) -> None:
        """Count pods that are on their way out."""
        self.terminating += number

    def __getitem__(self, phase: str) -> int:
        """How many pods are in ``phase``."""
        return self.phases[phase]

    def succeeded_of(self, task: str) -> int | None:
        """Succeeded pods of a task; None when no pod of the task was counted at all."""
        counted = self.tasks.get(task)
        return None if counted is None else counted["Succeeded"]
