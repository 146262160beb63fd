"""The books: every move of a task between statuses and nodes passes through here.

Jobs, sub-jobs, roles, queues and node rows carry counts and sums that must agree with the tasks at all times. The
mirror (on events) and the journal (in a cycle) change tasks only through a ``Ledger``, and every operation is the exact
reverse of another, so that a rolled back cycle leaves no trace.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from stromboli.scheduler.core.columns import CPU, MEMORY, Columns, Floats
from stromboli.scheduler.core.records import Job, Node, Queue, Shape, Task
from stromboli.scheduler.core.statuses import (
    ALLOCATED_STATUSES,
    CHARGED_STATUSES,
    TERMINATED_STATUSES,
    TaskStatus,
)
from stromboli.scheduler.core.tables import JobTable, Kind, NodeTable


class Holding(IntEnum):
    """How a task weighs on its node (spec 04 section 13.2)."""

    HELD = 0
    RELEASING = 1
    EVICTED = 2
    """releasing since this cycle: filters and scores do not see the pod any more"""
    PIPELINED = 3


_CHARGED = tuple(status in CHARGED_STATUSES for status in TaskStatus)
_ALLOCATED = tuple(status in ALLOCATED_STATUSES for status in TaskStatus)


_HOLDINGS = tuple(
    {TaskStatus.RELEASING: Holding.RELEASING, TaskStatus.PIPELINED: Holding.PIPELINED}.get(status, Holding.HELD)
    for status in TaskStatus
)


def holding_of(status: TaskStatus) -> Holding:
    """The weight of a task that is on a node in this status, outside of an eviction in this cycle."""
    return _HOLDINGS[status]


def is_on_node(status: TaskStatus) -> bool:
    """Whether a task in this status with a node name is counted on the node."""
    return status not in TERMINATED_STATUSES and status != TaskStatus.PENDING


class Ledger:
    """Keeps counts and sums in step with tasks."""

    def __init__(self, columns: Columns, nodes: NodeTable, jobs: JobTable) -> None:
        self._columns = columns
        self._nodes = nodes
        self._jobs = jobs
        self.changes: list[Job] = []
        """Jobs whose tasks changed status, in order; who keeps keys of jobs or queues reads on from where it was."""
        self.touched: dict[str, Job] = {}
        """Jobs that changed since this was last emptied."""

    # Jobs

    def join(self, task: Task, job: Job) -> None:
        """Counts a task in a job; its sub-job must already be set."""
        task.job = job
        job.tasks[task.uid] = task
        if task.sub_job is not None:
            task.sub_job.tasks[task.uid] = task
        if task.gated and not task.queue_gate_only:
            self._jobs.gated[job.row] += task.shape.request
        self._count(task, task.status, 1)

    def leave(self, task: Task) -> None:
        """Takes a task out of its job."""
        job = task.job
        if job is None:
            return
        self._count(task, task.status, -1)
        if task.gated and not task.queue_gate_only:
            self._jobs.gated[job.row] -= task.shape.request
        del job.tasks[task.uid]
        if task.sub_job is not None:
            task.sub_job.tasks.pop(task.uid, None)
        task.job = task.sub_job = None

    def reshape(self, task: Task, shape: Shape) -> None:
        """Gives a task a shape that weighs otherwise; not within a cycle."""
        job, sub_job, node = task.job, task.sub_job, task.node
        if node is not None:
            self.unweigh(task, node, holding_of(task.status))
        self.leave(task)
        task.shape = shape
        if node is not None:
            self.weigh(task, node, holding_of(task.status))
        if job is not None:
            task.sub_job = sub_job
            self.join(task, job)

    def set_status(self, task: Task, status: TaskStatus) -> None:
        """Moves a task between statuses on the side of its job and queue; its node is not looked at."""
        old, job, sub_job = task.status, task.job, task.sub_job
        if old == status:
            return
        task.status = status
        if job is None:
            return
        counts = job.counts
        counts[old] -= 1
        counts[status] += 1
        counts = job.role_counts[task.role]
        counts[old] -= 1
        counts[status] += 1
        if sub_job is not None:
            counts = sub_job.counts
            counts[old] -= 1
            counts[status] += 1
        if not (_ALLOCATED[old] and _ALLOCATED[status]):
            self._sum(task, job, old, -1)
            self._sum(task, job, status, 1)
        self.changes.append(job)
        self.touched[job.id] = job

    def activate(self, job: Job, queue: Queue) -> None:
        """Makes a job part of cycles and of its queue's sums."""
        job.queue = queue
        queue.jobs[job.id] = job
        self._jobs.active[job.row] = True
        self._jobs.queue[job.row] = queue.index
        queue.allocated += job.allocated
        queue.pending += self._pending(job)
        self.touched[job.id] = job

    def deactivate(self, job: Job) -> None:
        """The reverse of ``activate``."""
        queue = job.queue
        if queue is None:
            return
        queue.allocated -= job.allocated
        queue.pending -= self._pending(job)
        del queue.jobs[job.id]
        job.queue = None
        self._jobs.active[job.row] = False
        self._jobs.queue[job.row] = -1

    def _pending(self, job: Job) -> Floats:
        total = np.zeros(self._columns.width)
        for task in job.tasks.values():
            if task.status == TaskStatus.PENDING:
                total += task.shape.request
        return total

    def _count(self, task: Task, status: TaskStatus, sign: int) -> None:
        job, sub_job = task.job, task.sub_job
        assert job is not None
        job.counts[status] += sign
        if sub_job is not None:
            sub_job.counts[status] += sign
        counts = job.role_counts.get(task.role)
        if counts is None:
            counts = job.role_counts[task.role] = [0] * len(TaskStatus)
        counts[status] += sign
        self._sum(task, job, status, sign)
        self.changes.append(job)
        self.touched[job.id] = job

    def _sum(self, task: Task, job: Job, status: TaskStatus, sign: int) -> None:
        """What a task in this status adds to the sums of its job and queue, or takes from them."""
        if status == TaskStatus.PENDING:
            self._count_pending(task, job, task.shape, sign)
        elif _CHARGED[status]:
            self._charge(job, task.shape, status, sign)

    def _count_pending(self, task: Task, job: Job, shape: Shape, sign: int) -> None:
        if shape.best_effort:
            job.pending_best_effort += sign
            if task.sub_job is not None:
                task.sub_job.pending_best_effort += sign
            job.role_pending_empty[task.role] = job.role_pending_empty.get(task.role, 0) + sign
        if job.queue is not None:
            if sign > 0:
                job.queue.pending += shape.request
            else:
                job.queue.pending -= shape.request

    def _charge(self, job: Job, shape: Shape, status: TaskStatus, sign: int) -> None:
        row = self._jobs.allocated[job.row]
        if sign > 0:
            row += shape.request
            if job.queue is not None:
                job.queue.allocated += shape.request
        else:
            row -= shape.request
            if job.queue is not None:
                job.queue.allocated -= shape.request
        if _ALLOCATED[status]:
            self._jobs.allocated_tasks[job.row] += sign

    # Nodes

    def put(self, task: Task, node: Node, holding: Holding) -> None:
        """Puts a task on a node. Raises ValueError when it is on one already (spec 04 section 13.2)."""
        if task.node is not None and task.node is not node:
            raise ValueError(f"task <{task.key}> already on different node <{task.node.name}>")
        if task.key in node.tasks:
            raise ValueError(f"task <{task.key}> already on node <{node.name}>")
        task.node, task.node_name = node, node.name
        node.tasks[task.key] = task
        self.weigh(task, node, holding)

    def take_off(self, task: Task, holding: Holding) -> None:
        """The reverse of ``put`` for a task that weighs as ``holding``."""
        node = task.node
        if node is None:
            return
        self.unweigh(task, node, holding)
        del node.tasks[task.key]
        task.node, task.node_name = None, ""

    def reweigh(self, task: Task, old: Holding, new: Holding) -> None:
        """Changes how a task weighs on the node it stays on."""
        node = task.node
        if old == new or node is None:
            return
        if node.row >= 0:
            self._nodes.add(node.row, self._change(task.shape, old, new))
        if task.host_ports:
            if old != Holding.EVICTED:
                _free_ports(task, node)
            if new != Holding.EVICTED:
                _hold_ports(task, node)

    def weigh(self, task: Task, node: Node, holding: Holding) -> None:
        """Adds the weight of a task to the node's row; a placeholder has none."""
        if node.row >= 0:
            self._nodes.add(node.row, self.block(task.shape, holding))
        if task.host_ports and holding != Holding.EVICTED:
            _hold_ports(task, node)

    def unweigh(self, task: Task, node: Node, holding: Holding) -> None:
        """The reverse of ``weigh``."""
        if node.row >= 0:
            self._nodes.subtract(node.row, self.block(task.shape, holding))
        if task.host_ports and holding != Holding.EVICTED:
            _free_ports(task, node)

    def block(self, shape: Shape, holding: Holding) -> Floats:
        """What a task of a shape adds to a node's row; the same array every time."""
        delta = shape.delta.get(holding)
        if delta is None:
            delta = shape.delta[holding] = _block(shape, holding, self._columns.width)
        return delta

    def _change(self, shape: Shape, old: Holding, new: Holding) -> Floats:
        delta = shape.delta.get((old, new))
        if delta is None:
            delta = shape.delta[old, new] = self.block(shape, new) - self.block(shape, old)
        return delta


def _hold_ports(task: Task, node: Node) -> None:
    for port in task.host_ports:
        node.ports[port] = node.ports.get(port, 0) + 1


def _free_ports(task: Task, node: Node) -> None:
    for port in task.host_ports:
        if node.ports[port] == 1:
            del node.ports[port]
        else:
            node.ports[port] -= 1


def _block(shape: Shape, holding: Holding, width: int) -> Floats:
    block = np.zeros((len(Kind), width))
    request = shape.request
    if holding == Holding.PIPELINED:
        block[Kind.PIPELINED] = request
        block[Kind.FUTURE] = -request
    else:
        block[Kind.IDLE] = -request
        block[Kind.USED] = request
        if holding == Holding.HELD:
            block[Kind.FUTURE] = -request
        else:
            block[Kind.RELEASING] = request
    if holding != Holding.EVICTED:
        block[Kind.REQUESTED] = request
        block[Kind.NONZERO, CPU], block[Kind.NONZERO, MEMORY] = shape.nonzero
    return block
