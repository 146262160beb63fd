"""In which order victims go, as seen from whoever needs their resources (spec 04 section 28.3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from stromboli.scheduler.core.combining import Combination
from stromboli.scheduler.core.records import Job, Task


def key(combination: Combination, preemptor: Job) -> Callable[[Task], Any]:
    """A sort key by present orders: the victim to go first is the least."""
    order = _VictimOrder(combination, preemptor)
    return cmp_to_key(order.compare)


class _VictimOrder:
    def __init__(self, combination: Combination, preemptor: Job) -> None:
        self._combination = combination
        self._preemptor = preemptor

    def compare(self, left: Task, right: Task) -> int:
        return -1 if self._goes_first(left, right) else 1

    def _goes_first(self, left: Task, right: Task) -> bool:
        theirs, others = left.job, right.job
        if theirs is others or (theirs is None and others is None):
            return self._later_task(left, right)
        if theirs is None or others is None:
            return theirs is None
        mine, queue, other_queue = self._preemptor.queue, theirs.queue, others.queue
        if mine is None or queue is None or other_queue is None or queue is other_queue:
            return self._later_job(left, right)
        return self._combination.victim_queue_compare(queue, other_queue, mine) < 0

    def _later_job(self, left: Task, right: Task) -> bool:
        assert left.job is not None and right.job is not None
        key = self._combination.job_ordering.plugin_key
        mine, other = key(left.job), key(right.job)
        return mine > other if mine != other else self._later_task(left, right)

    def _later_task(self, left: Task, right: Task) -> bool:
        key = self._combination.task_ordering.key
        return key(left) > key(right)
