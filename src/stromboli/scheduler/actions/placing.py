"""Placing the tasks of one sub-job in one HyperNode (spec 05 section 7).

A gang of identical tasks costs one maximum over the nodes and one node looked at again per task.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from stromboli.scheduler.actions.worksheets import Work
from stromboli.scheduler.core import amounts, readiness
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.fit_errors import FitErrors
from stromboli.scheduler.core.journal import Statement
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, SubJob, Task
from stromboli.scheduler.core.searching import Choice, Evaluation
from stromboli.scheduler.core.tables import Rows


@dataclass(frozen=True, slots=True)
class Domain:
    """Where tasks may go."""

    hyper_node: str
    rows: Rows | None
    """None: every node."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no node at all."""
        return self.rows is not None and not len(self.rows)


def domain(cycle: Cycle, hyper_node: str) -> Domain:
    """The nodes of a HyperNode in this session."""
    hyper_nodes = cycle.view.hyper_nodes
    if hyper_node == ROOT_HYPER_NODE:
        return Domain(hyper_node, None if len(hyper_nodes.rows[ROOT_HYPER_NODE]) else np.empty(0, dtype=np.intp))
    return Domain(hyper_node, hyper_nodes.rows.get(hyper_node, np.empty(0, dtype=np.intp)))


class _Next(Enum):
    GO_ON = "go on"
    STOP = "stop"


def place(cycle: Cycle, work: Work, where: Domain) -> Statement | None:
    """Places tasks until the sub-job is ready or nothing is left to try.

    The statement that comes back makes the sub-job ready, or pipelined; otherwise nothing has changed but the tasks
    taken off ``work``.
    """
    if where.is_empty:
        return None
    return _Placement(cycle, work, where).run()


class _Placement:
    def __init__(self, cycle: Cycle, work: Work, where: Domain) -> None:
        self._cycle = cycle
        self._work = work
        self._where = where
        self._sub_job = work.sub_job
        self._statement = cycle.statement()
        job = work.sub_job.job
        assert job.queue is not None
        self._queue = job.queue
        self._confined = work.sub_job.hard_tier is not None or job.hard_tier is not None

    def run(self) -> Statement | None:
        before = self._sub_job.allocated_hyper_node
        try:
            self._run()
        finally:
            self._sub_job.allocated_hyper_node = before
        combination = self._cycle.combination
        if combination.sub_job_ready(self._sub_job) or combination.sub_job_pipelined(self._sub_job):
            return self._statement
        self._statement.discard()
        return None

    def _run(self) -> None:
        tasks, combination = self._work.tasks, self._cycle.combination
        while tasks:
            task = tasks.pop()
            if self._try(task) is _Next.STOP or combination.sub_job_ready(self._sub_job):
                return

    def _try(self, task: Task) -> _Next:
        cycle = self._cycle
        if self._is_barred(task):
            return _Next.GO_ON
        error = cycle.combination.prepare(task)
        if error is not None:
            cycle.record(task, FitErrors.everywhere(int(cycle.view.nodes.live.sum()), error))
            return _Next.STOP
        evaluation = cycle.searches.of(task)
        choice = self._nominated(task, evaluation) or evaluation.choose(self._where.rows, cycle.random)
        if choice is None:
            cycle.record(task, evaluation.errors(self._where.rows, self._where.hyper_node))
            cycle.miss(self._sub_job.job, lambda: evaluation.near_miss(self._where.rows))
            return _Next.GO_ON if readiness.may_go_on(self._sub_job) else _Next.STOP
        self._put(task, choice)
        return _Next.GO_ON

    def _is_barred(self, task: Task) -> bool:
        if not self._cycle.combination.allocatable(self._queue, task):
            self._note_queue(task)
            return True
        if task.gated:
            if task.gate_opt_in and self._cycle.view.feature("SchedulingGatesQueueAdmission", False):
                self._cycle.remove_gate(task)
            return True
        if readiness.role_failed(self._sub_job, task):
            text = f"Task {task.name} with role spec {task.role} has already predicated failed, skip"
            self._cycle.record(task, FitErrors(text=text))
            return True
        return False

    def _note_queue(self, task: Task) -> None:
        job = self._sub_job.job
        if job.id in self._cycle.notes:
            return  # once a job: the text is much the same for all its tasks
        refusal = self._cycle.combination.withheld(self._queue, task)
        if refusal is not None:
            self._cycle.withhold(job, refusal)
        else:
            self._cycle.note(job, self._nothing_more(task))

    def _nothing_more(self, task: Task) -> str:
        columns = self._cycle.view.columns
        held, asked = (
            ", ".join(f"{name} {amount}" for name, amount in amounts.write(columns.amounts(vector)).items())
            for vector in (self._queue.allocated, task.request)
        )
        return f"queue {self._queue.name} holds {held} and gives {task.name} nothing more ({asked})"

    def _nominated(self, task: Task, evaluation: Evaluation) -> Choice | None:
        """The node that the pod was promised, if it is one of ours and still takes it."""
        if not task.nominated_node:
            return None
        node = self._cycle.view.nodes_by_name.get(task.nominated_node)
        if node is None or node.row < 0:
            return None
        if self._where.rows is not None and node.row not in self._where.rows:
            return None
        return evaluation.choose(np.array([node.row], dtype=np.intp), self._cycle.random)

    def _put(self, task: Task, choice: Choice) -> None:
        node = self._cycle.view.node_list[choice.row]
        assert node is not None
        try:
            if choice.waits:
                self._statement.pipeline(task, node, eviction_occurred=False)
            else:
                self._statement.allocate(task, node)
        except PlacementRefused as refusal:
            self._cycle.complain(f"{task.key} could not be placed on {node.name}: {refusal}")
            return
        if self._confined:
            self._widen(self._sub_job, choice.row)

    def _widen(self, sub_job: SubJob, row: int) -> None:
        hyper_nodes = self._cycle.view.hyper_nodes
        lowest = hyper_nodes.lowest_of_row.get(row, "")
        sub_job.allocated_hyper_node = hyper_nodes.lowest_common_ancestor(lowest, sub_job.allocated_hyper_node)
