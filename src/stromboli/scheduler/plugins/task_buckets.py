"""Tasks of a job that should share a node, as buckets (spec 06 section 24).

Buckets are made as a cycle opens, in a fixed order, and follow the placements of the cycle; a placement that is undone
leaves no trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stromboli.scheduler.core.columns import CPU, MEMORY, Floats
from stromboli.scheduler.core.statuses import TaskStatus

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Job, Task
    from stromboli.scheduler.plugins.task_groups import TaskTopology

MIB = 1024.0 * 1024.0


@dataclass(slots=True, eq=False)
class Bucket:
    """Tasks that want to be together."""

    index: int
    node: str = ""
    """The node it grew around, if it did."""
    unplaced: dict[str, Task] = field(default_factory=dict)
    on_node: Counter[str] = field(default_factory=Counter)
    roles: Counter[str] = field(default_factory=Counter)

    @property
    def size(self) -> int:
        """All tasks in it."""
        return self.roles.total()

    @property
    def weight(self) -> float:
        """How much its unplaced tasks ask for, in a mixture of units."""
        return sum(_weight(task.request) for task in self.unplaced.values())


class Buckets:
    """The buckets of one job."""

    def __init__(self, job: Job, topology: TaskTopology) -> None:
        self.topology = topology
        self.of_task: dict[str, Bucket] = {}
        self.all: list[Bucket] = []
        self.largest = 0
        self.roles_on: dict[str, Counter[str]] = {}
        """Roles of the job's tasks by node."""
        for task in self._in_order(job.tasks.values()):
            self._add(task)

    def placed(self, task: Task, node: str) -> None:
        """A task of the job got a node, or keeps it after all."""
        self._count(task, node, 1)
        bucket = self.of_task.get(task.uid)
        if bucket is not None:
            bucket.unplaced.pop(task.uid, None)
            bucket.on_node[node] += 1

    def removed(self, task: Task, node: str) -> None:
        """The reverse: a placement was undone, or the task is evicted."""
        self._count(task, node, -1)
        bucket = self.of_task.get(task.uid)
        if bucket is not None:
            bucket.on_node[node] -= 1
            if task.status == TaskStatus.PENDING:
                bucket.unplaced[task.uid] = task

    def sort_key(self, task: Task) -> tuple[int, int, str]:
        """The order inside a bucket: rank, then priority, then name."""
        return -self.topology.rank(task.role), -self.topology.priority(task.role), task.name

    def _in_order(self, tasks: Iterable[Task]) -> list[Task]:
        """Tasks on nodes first, by node; tasks without a wish are left out, those over as well."""
        wishing = [
            task
            for task in tasks
            if self.topology.priority(task.role) and task.status not in (TaskStatus.SUCCEEDED, TaskStatus.FAILED)
        ]
        return sorted(wishing, key=lambda task: (not task.node_name, task.node_name, self.sort_key(task)))

    def _add(self, task: Task) -> None:
        if task.node_name:
            bucket = next((one for one in self.all if one.node == task.node_name), None) or self._new(task.node_name)
            bucket.on_node[task.node_name] += 1
            self._count(task, task.node_name, 1)
        else:
            bucket = self._best(task)
            bucket.unplaced[task.uid] = task
        bucket.roles[task.role] += 1
        self.of_task[task.uid] = bucket
        self.largest = max(self.largest, bucket.size)

    def _best(self, task: Task) -> Bucket:
        """The bucket with most affinity, of equal ones the lightest; a new one when all repel the task."""
        best = min(self.all, key=lambda one: (-self._affinity(task, one), one.weight), default=None)
        return best if best is not None and self._affinity(task, best) >= 0 else self._new()

    def _affinity(self, task: Task, bucket: Bucket) -> int:
        topology = self.topology
        return topology.attraction(task.role, bucket.roles) - topology.repulsion(task.role, bucket.roles)

    def _new(self, node: str = "") -> Bucket:
        self.all.append(Bucket(len(self.all), node))
        return self.all[-1]

    def _count(self, task: Task, node: str, times: int) -> None:
        self.roles_on.setdefault(node, Counter())[task.role] += times


def _weight(request: Floats) -> float:
    others = request.sum() - request[CPU] - request[MEMORY]
    return float(request[CPU] + request[MEMORY] / MIB + others)
