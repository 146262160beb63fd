"""task-topology: tasks of a job that belong together share a node, others are spread (spec 06 section 24)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stromboli.scheduler.core import policy
from stromboli.scheduler.core.columns import CPU, EPSILON, MEMORY
from stromboli.scheduler.core.plugin import Depends, Hooks, Order, Plugin, Reach, Scope, Score
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.plugins import arguments
from stromboli.scheduler.plugins.task_buckets import Buckets
from stromboli.scheduler.plugins.task_groups import BadTopology, TaskTopology

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Job, Node, Task
    from stromboli.scheduler.core.tables import Bools, Rows
    from stromboli.scheduler.core.view import View
    from stromboli.scheduler.plugins.task_buckets import Bucket

WEIGHT = "task-topology.weight"
FULL = 100.0


class TaskTopologyPlugin(Plugin):
    """Orders tasks and scores nodes for jobs with task-topology annotations; costs nothing where there are none."""

    name: ClassVar[str] = "task-topology"
    arguments_model = arguments.model("TaskTopologyArguments", **{WEIGHT.replace(".", "__"): arguments.Integer})

    def open(self, view: View) -> Hooks:
        self._view = view
        self._weight = policy.integer(self.arguments, WEIGHT, 1)
        self._buckets = {job.id: buckets for job in view.unsettled() if (buckets := self._open_job(job)) is not None}
        if not self._buckets:
            return Hooks()
        return Hooks(
            task_order=Order(compare=self._compare, depends=Depends.OTHERS),
            scores=[Score("task topology", self._rate, scope=Scope.TASK, reach=Reach.CLUSTER)],
            on_allocate=self._placed,
            on_deallocate=self._removed,
        )

    def _open_job(self, job: Job) -> Buckets | None:
        if not job.counts[TaskStatus.PENDING]:
            return None
        try:
            topology = TaskTopology.read(job.annotations, job.id, {task.role for task in job.tasks.values()})
        except BadTopology as error:
            self._view.warn(f"PodGroup {job.id}: its task topology is ignored: {error}", job.pod_group)
            return None
        return None if topology is None else Buckets(job, topology)

    def _of(self, task: Task) -> Buckets | None:
        return self._buckets.get(task.job_id)

    def _compare(self, left: Task, right: Task) -> int:
        """Tasks in buckets first; in a job the bucket with most left to place, in a bucket rank and priority."""
        mine, other = self._of(left), self._of(right)
        if mine is None or other is None:
            return 0
        bucket, other_bucket = mine.of_task.get(left.uid), other.of_task.get(right.uid)
        if bucket is None or other_bucket is None:
            return (bucket is None) - (other_bucket is None)
        if mine is not other:
            return 0
        if bucket is other_bucket:
            ours, theirs = mine.sort_key(left)[:2], mine.sort_key(right)[:2]
            return (ours > theirs) - (ours < theirs)
        if len(bucket.unplaced) != len(other_bucket.unplaced):
            return -1 if len(bucket.unplaced) > len(other_bucket.unplaced) else 1
        return bucket.index - other_bucket.index

    def _rate(self, task: Task, rows: Rows) -> Floats | None:
        buckets = self._of(task)
        bucket = buckets.of_task.get(task.uid) if buckets is not None else None
        if buckets is None or bucket is None:
            return None
        nodes = self._view.nodes
        room = nodes.idle[rows] + nodes.releasing[rows]
        base = np.array([self._company(buckets, bucket, task, row) for row in rows.tolist()], dtype=np.float64)
        base += self._fitting(buckets, bucket, task, room)
        fits = _holds(room, task.request)
        return np.where(fits, base, 0.0) * self._weight * FULL / buckets.largest

    def _company(self, buckets: Buckets, bucket: Bucket, task: Task, row: int) -> int:
        """Tasks of the bucket on the node, less those of the job that the task wants away."""
        node = self._view.node_list[row]
        if node is None:
            return 0
        unwanted = buckets.topology.repulsion(task.role, buckets.roles_on.get(node.name, {}))
        return bucket.on_node[node.name] - unwanted

    @staticmethod
    def _fitting(buckets: Buckets, bucket: Bucket, task: Task, room: Floats) -> Floats:
        """How many unplaced tasks of the bucket, this one first, fit together; the last in order are left out first."""
        others = sorted((one for one in bucket.unplaced.values() if one is not task), key=buckets.sort_key)
        count, together = np.zeros(len(room)), np.zeros(room.shape[1])
        for one in [task, *others]:
            together = together + one.request
            count += _holds(room, together)
        return count

    def _placed(self, task: Task, node: Node) -> None:
        buckets = self._of(task)
        if buckets is not None:
            buckets.placed(task, node.name)

    def _removed(self, task: Task, node: Node) -> None:
        buckets = self._of(task)
        if buckets is not None:
            buckets.removed(task, node.name)


def _holds(room: Floats, wanted: Floats) -> Bools:
    """Where there is this much. What a node owes of a scalar resource that is not asked for does not matter."""
    asked = np.union1d(np.nonzero(wanted)[0], [CPU, MEMORY])
    result: Bools = (wanted[asked] < room[:, asked] + EPSILON).all(axis=1)
    return result
