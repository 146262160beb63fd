"""What the evicting actions share: which nodes to try, who may go, and who goes first (spec 04 section 28, spec 05)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from stromboli.scheduler.core import victim_order
from stromboli.scheduler.core.columns import EPSILON, Floats
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.fit_errors import FitErrors
from stromboli.scheduler.core.opening import has_topology
from stromboli.scheduler.core.records import Job, Node, Task
from stromboli.scheduler.core.searching import Evaluation
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.tables import Bools, Rows

NEVER = "Never"
"""``preemptionPolicy`` of pods that must not take resources from others."""


def starving_jobs(cycle: Cycle, *, with_topology: bool) -> list[Job]:
    """Admitted, valid jobs that have less than they need and may take it from others."""
    return [
        job
        for job in admitted_jobs(cycle)
        if job.counts[TaskStatus.PENDING]
        and (with_topology or not has_topology(job))
        and cycle.combination.job_starving(job)
    ]


def admitted_jobs(cycle: Cycle) -> list[Job]:
    """Jobs past the Pending phase that can be scheduled as they are."""
    return [job for job in cycle.mirror.open_jobs() if not job.is_pending and cycle.valid(job)]


def pending_tasks(cycle: Cycle, job: Job) -> list[Task]:
    """Pending tasks without scheduling gates; the one to serve first is last in the list."""
    tasks = [task for task in job.tasks.values() if task.status == TaskStatus.PENDING and not task.gated]
    return sorted(tasks, key=cycle.combination.task_ordering.key, reverse=True)


def worth_trying(cycle: Cycle, task: Task) -> Rows:
    """Nodes that may take the task once others have gone, in node-list order."""
    rows, hopeless = prospects(cycle.searches.of(task), task)
    return rows if hopeless is None else rows[~hopeless[rows]]


def prospects(evaluation: Evaluation, task: Task) -> tuple[Rows, Bools | None]:
    """Rows that filters leave to the task once others have gone, and of every row whether it was found hopeless before.

    As long as nothing about them changes, both are the same arrays for tasks of one kind.
    """
    errors = task.job.fit_errors.get(task.uid) if task.job is not None else None
    hopeless = errors.unresolvable if isinstance(errors, FitErrors) else None
    return evaluation.passes_for_eviction(None), hopeless


def fits(task: Task, available: Sequence[float]) -> bool:
    """Whether amounts suffice for a task."""
    return all(asked < available[column] + EPSILON for column, asked in task.shape.row_compared)


def vacate(available: list[float], victim: Task) -> None:
    """Adds what a victim leaves behind."""
    for column, held in victim.shape.row_request:
        available[column] += held


def accepts(evaluation: Evaluation, node: Node) -> bool:
    """Whether nothing but resources speaks against a node now: its devices, say, or pods that the task is kept from."""
    if not evaluation.beyond_amounts:
        return True
    return bool(len(evaluation.feasible(np.array([node.row], dtype=np.intp), resources=False)))


def future_of(cycle: Cycle, node: Node) -> list[float]:
    """What the node will have, by column, once everything being released is gone and everything promised is taken.

    A list: single numbers are read and changed in it more quickly than in an array.
    """
    row: list[float] = cycle.view.nodes.future[node.row].tolist()
    return row


def suffice(cycle: Cycle, task: Task, node: Node, victims: Iterable[Task]) -> bool:
    """Whether the node would have room if all victims went; with no victims, whether it has."""
    available = future_of(cycle, node)
    for victim in victims:
        vacate(available, victim)
        if fits(task, available):  # more victims only make more room
            return True
    return fits(task, available)


def is_something(requests: Floats) -> bool:
    """Whether there is anything but pod slots in it."""
    return bool((np.delete(requests, 2) >= EPSILON).any())


class VictimQueue:
    """Victims in the order in which they go, by keys as they are at each turn (spec 04 section 28.3)."""

    def __init__(self, cycle: Cycle, victims: Iterable[Task], preemptor: Job) -> None:
        self._left = list(victims)
        self._of_one_job = len({victim.job for victim in self._left}) == 1
        """Then the last in task order goes first: no need to compare two by two."""
        self._key: Callable[[Task], Any]
        if self._of_one_job:
            self._key = cycle.combination.task_ordering.lasting_key
        else:
            self._key = victim_order.key(cycle.combination, preemptor)

    def __bool__(self) -> bool:
        return bool(self._left)

    def pop(self) -> Task:
        """The next victim."""
        first = max(self._left, key=self._key) if self._of_one_job else min(self._left, key=self._key)
        self._left.remove(first)
        return first


def candidates(node: Node, allowed: Callable[[Task], bool]) -> Sequence[Task]:
    """Tasks on a node that pass an action's own filter, in the order in which plugins are asked about them."""
    return offered(task for task in node.tasks.values() if allowed(task))


def offered(tasks: Iterable[Task]) -> list[Task]:
    """Tasks in the order in which plugins are asked about them: the least important first, then by name.

    Plugins that let only so many go spare the last ones, so the order must not be that in which pods were heard of.
    """
    return sorted(tasks, key=lambda task: (task.priority, task.key))
