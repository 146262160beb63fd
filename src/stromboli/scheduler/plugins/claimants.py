"""Tasks for which others have been evicted and which still wait, and why that matters to queues (spec 05 section 11).

A task evicted from a queue that had too much comes back as a new pod, and its queue, having less now, would be served
first: it would take the room again, be evicted again, for ever. So while a task of another queue waits for the room
that was made for it, a queue gets nothing beyond what it deserves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.scheduler.core.columns import EPSILON, PODS
from stromboli.scheduler.core.statuses import TaskStatus

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Task
    from stromboli.scheduler.core.view import View
    from stromboli.scheduler.plugins.queue_accounts import Account


class Claimants:
    """The waiting tasks with a nominated node, looked up when first needed."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._waiting: list[Task] | None = None

    def outrank(self, account: Account, task: Task) -> bool:
        """Whether the task would take its queue beyond what it deserves while room is kept for another queue's task."""
        if task.nominated_node or _within(account, task):
            return False
        return any(
            other.status == TaskStatus.PENDING and other.job is not None and other.job.queue_name != account.name
            for other in self._all()
        )

    def _all(self) -> list[Task]:
        if self._waiting is None:
            self._waiting = [
                task
                for job in self._view.unsettled()
                if job.counts[TaskStatus.PENDING]
                for task in job.tasks.values()
                if task.nominated_node and task.status == TaskStatus.PENDING and self._has_room(task)
            ]
        return self._waiting

    def _has_room(self, task: Task) -> bool:
        """Whether the node still has, or will have, the room: nothing is kept for what cannot come true."""
        node = self._view.nodes_by_name.get(task.nominated_node)
        if node is None or node.row < 0:
            return False
        future = self._view.nodes.future[node.row]
        return all(amount < future[column] + EPSILON for column, amount in task.shape.row_request)


def _within(account: Account, task: Task) -> bool:
    """Whether the queue, with the task, has no more than it deserves of anything the task asks for."""
    allocated, deserved = account.allocated, account.deserved
    return (
        all(
            allocated[column] + amount < deserved[column] + EPSILON
            for column, amount in task.shape.row_request
            if column != PODS and deserved[column] >= EPSILON
        )
        and not account.is_best_effort
    )
