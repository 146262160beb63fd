"""Room that was made for a task by evicting others is kept for it (spec 05 section 11).

A task that was evicted comes back as a new pod, and its queue, having less now, would often be served first: it would
take the room again, be evicted again, for ever. So what a waiting task has been promised on a node is not given to
tasks of other queues, for as long as the node has, or will have, the room at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.scheduler.core.columns import EPSILON
from stromboli.scheduler.core.plugin import Filter, Reach, Refusals
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.statuses import TaskStatus

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View

KEPT = Reason("node(s) had only resources kept for pods that others were evicted for", Code.UNSCHEDULABLE)


class Claimants:
    """The waiting tasks with a nominated node, looked up when first needed."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._waiting: list[tuple[Task, int]] | None = None

    def filter(self) -> Filter:
        """Refuses rows whose room is kept for tasks of other queues; costs nothing while nobody waits for room."""
        return Filter(
            "kept resources", [KEPT], self._refuse, reach=Reach.CLUSTER, concerns=lambda _task: bool(self._all())
        )

    def _refuse(self, task: Task, rows: Rows) -> Refusals | None:
        if task.nominated_node or task.job is None:
            return None
        kept: dict[int, float | np.typing.NDArray[np.float64]] = {}
        for other, row in self._all():
            waits = other.status == TaskStatus.PENDING and other.job is not None
            if waits and other.job is not None and other.job.queue is not task.job.queue:
                kept[row] = kept.get(row, 0.0) + other.request
        result = np.zeros(len(rows), dtype=np.uint8)
        for row, amount in kept.items():
            left = self._view.nodes.future[row] - amount
            if not all(asked < left[column] + EPSILON for column, asked in task.shape.row_request):
                result[rows == row] = 1
        return result

    def _all(self) -> list[tuple[Task, int]]:
        if self._waiting is None:
            self._waiting = [
                (task, row)
                for job in self._view.unsettled()
                if job.counts[TaskStatus.PENDING]
                for task in job.tasks.values()
                if task.nominated_node and task.status == TaskStatus.PENDING and (row := self._row(task)) >= 0
            ]
        return self._waiting

    def _row(self, task: Task) -> int:
        """The row of the nominated node; -1 when it has no room for the task, now or later."""
        node = self._view.nodes_by_name.get(task.nominated_node)
        if node is None or node.row < 0:
            return -1
        future = self._view.nodes.future[node.row]
        return node.row if all(asked < future[column] + EPSILON for column, asked in task.shape.row_request) else -1
