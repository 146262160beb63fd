"""Topology-aware preemption: trying out on each node which victims are really needed (spec 05 section 11.6).

A dry run evicts through the journal and undoes everything, so all filters see the node as it would be, ports and
spreading included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from stromboli.scheduler.actions import victims
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.records import Node, Task
from stromboli.scheduler.core.statuses import TaskStatus

_OFFSET = 2**31
"""Makes sums of priorities prefer fewer victims even when priorities are negative."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node and the tasks that would have to go."""

    node: Node
    victims: list[Task]


def candidates(
    cycle: Cycle, task: Task, rows: Iterable[int], allowed: Callable[[Task], bool], wanted: int
) -> list[Candidate]:
    """The first nodes, in the order given, on which the task fits after some evictions."""
    found: list[Candidate] = []
    for row in rows:
        if len(found) >= wanted:
            break
        node = cycle.view.node_list[row]
        needed = _DryRun(cycle, task, node, allowed).run() if node is not None else []
        if node is not None and needed:
            found.append(Candidate(node, needed))
    return found


class _DryRun:
    def __init__(self, cycle: Cycle, task: Task, node: Node, allowed: Callable[[Task], bool]) -> None:
        self._cycle, self._task, self._node, self._allowed = cycle, task, node, allowed
        self._removed: list[tuple[Task, TaskStatus]] = []

    def run(self) -> list[Task]:
        """The victims that are really needed; empty when the node does not work out or needs none."""
        cycle, task, node = self._cycle, self._task, self._node
        assert task.job is not None
        chosen = cycle.combination.preemptable(task, victims.candidates(node, self._allowed))
        if not victims.suffice(cycle, task, node, chosen):
            return []
        queue = victims.VictimQueue(cycle, chosen, task.job)
        while queue and not self._takes():
            victim = queue.pop()
            self._removed.append((victim, victim.status))
            cycle.journal.evict(victim)
        needed = self._reprieve() if self._removed and self._takes() else []
        for victim, before in reversed(self._removed):
            if victim.status == TaskStatus.RELEASING:
                cycle.journal.unevict(victim, before)
        return needed

    def _reprieve(self) -> list[Task]:
        """Gives back whoever need not go, the last to go first."""
        needed: list[Task] = []
        for victim, before in reversed(self._removed):
            self._cycle.journal.unevict(victim, before)
            if not self._takes():
                self._cycle.journal.evict(victim)
                needed.append(victim)
        return needed

    def _takes(self) -> bool:
        cycle, task = self._cycle, self._task
        queue = task.job.queue if task.job is not None else None
        if queue is None or not cycle.combination.allocatable(queue, task):
            return False
        row = np.array([self._node.row], dtype=np.intp)
        return bool(len(cycle.searches.of(task).feasible(row)))


def best(found: list[Candidate]) -> Candidate | None:
    """The candidate that hurts least; of equal ones the first found."""
    return min(found, key=_harm, default=None)


def _harm(candidate: Candidate) -> tuple[int, int, int, float]:
    """Highest priority, sum of priorities, number, and how long the most important ones have been running."""
    priorities = [task.spec_priority for task in candidate.victims]
    highest = max(priorities)
    earliest = min(task.started for task in candidate.victims if task.spec_priority == highest)
    return highest, sum(priority + _OFFSET for priority in priorities), len(priorities), -earliest
