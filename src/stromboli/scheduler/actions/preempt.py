"""preempt: takes resources from tasks of the same queue (spec 05 section 11).

First starving jobs take from other jobs of their queue, each all or nothing; then tasks take from less important tasks
of their own job, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from stromboli.scheduler.actions import dry_runs, victims
from stromboli.scheduler.core import policy
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.journal import Statement
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.records import Job, Node, Queue, Task
from stromboli.scheduler.core.statuses import EVICTABLE_STATUSES
from stromboli.scheduler.core.tables import Rows

REASON = "preempt"
Allowed = Callable[[Task], bool]


@dataclass(frozen=True, slots=True)
class Options:
    """Arguments of the action."""

    topology_aware: bool = False
    percentage: int = 10
    minimum: int = 1
    maximum: int = 100

    @classmethod
    def read(cls, arguments: Mapping[str, object]) -> Options:
        """Unreadable values leave the defaults."""
        return cls(
            policy.boolean(arguments, "enableTopologyAwarePreemption", False),
            policy.integer(arguments, "minCandidateNodesPercentage", 10),
            policy.integer(arguments, "minCandidateNodesAbsolute", 1),
            policy.integer(arguments, "maxCandidateNodesAbsolute", 100),
        )


def preempt(cycle: Cycle, arguments: Mapping[str, object]) -> None:
    """Evicts for starving jobs of every queue."""
    _Preemption(cycle, Options.read(arguments)).run()


class _Preemption:
    def __init__(self, cycle: Cycle, options: Options) -> None:
        self._cycle = cycle
        self._options = options
        self._tasks: dict[str, list[Task]] = {}

    def run(self) -> None:
        cycle = self._cycle
        by_queue: dict[str, list[Job]] = {}
        for job in victims.starving_jobs(cycle, with_topology=False):
            assert job.queue is not None
            by_queue.setdefault(job.queue.name, []).append(job)
            self._tasks[job.id] = victims.pending_tasks(cycle, job)
        queues = cycle.combination.queue_heap()
        queues.push_all(cycle.view.queues[name] for name in by_queue)
        while queues:
            queue = queues.pop()
            self._between_jobs(by_queue[queue.name])
            for job in cycle.combination.job_ordering.sorted(by_queue[queue.name]):
                self._inside(job)

    def _between_jobs(self, starving: list[Job]) -> None:
        jobs = self._cycle.combination.job_heap()
        jobs.push_all(starving)
        while jobs:
            job = jobs.pop()
            if self._serve(job):
                jobs.push(job)

    def _serve(self, job: Job) -> bool:
        """One job takes what it needs, or nothing; whether it may want more."""
        combination = self._cycle.combination
        statement = self._cycle.statement()
        tasks, placed = self._tasks[job.id], False
        while tasks and combination.job_starving(job):
            placed = self._place(statement, tasks.pop(), _of_other_jobs)
        if not combination.job_pipelined(job):
            statement.discard()
            return False
        statement.commit()
        return placed

    def _inside(self, job: Job) -> None:
        tasks = victims.pending_tasks(self._cycle, job)
        while tasks:
            statement = self._cycle.statement()
            if not self._place(statement, tasks.pop(), _of_same_job):
                statement.discard()
                return
            statement.commit()

    def _place(self, statement: Statement, task: Task, whose: Callable[[Task], Allowed]) -> bool:
        """Pipelines one task onto a node, evicting what stands in its way."""
        cycle = self._cycle
        if not _is_eligible(cycle, task) or cycle.combination.prepare(task) is not None:
            return False
        rows = victims.worth_trying(cycle, task)
        allowed = whose(task)
        if self._options.topology_aware:
            return self._place_by_dry_run(statement, task, rows, allowed)
        for row in cycle.searches.of(task).by_score(rows).tolist():
            node = cycle.view.node_list[row]
            if node is not None and self._place_on(statement, task, node, allowed):
                return True
        return False

    def _place_on(self, statement: Statement, task: Task, node: Node, allowed: Allowed) -> bool:
        cycle = self._cycle
        chosen = cycle.combination.preemptable(task, victims.candidates(node, allowed))
        cycle.view.measure("pod_preemption_victims", len(chosen))
        if not victims.suffice(cycle, task, node, chosen):
            return False
        cycle.view.measure("total_preemption_attempts", 1)
        job = _job(task)
        local = cycle.statement()
        queue = victims.VictimQueue(cycle, chosen, job)
        evicted = np.zeros(cycle.view.columns.width)
        while queue and not self._takes(task, node):
            victim = queue.pop()
            evicted += victim.request
            local.evict(victim, REASON)
        if self._takes(task, node) and _pipeline(cycle, local, task, node, victims.is_something(evicted)):
            statement.merge(local)
            return True
        local.discard()
        return False

    def _takes(self, task: Task, node: Node) -> bool:
        return self._has_room(task, node) and victims.accepts(self._cycle.searches.of(task), node)

    def _has_room(self, task: Task, node: Node) -> bool:
        queue = _queue(task)
        room = victims.fits(task, victims.future_of(self._cycle, node))
        return room and self._cycle.combination.allocatable(queue, task)

    def _place_by_dry_run(self, statement: Statement, task: Task, rows: Rows, allowed: Allowed) -> bool:
        cycle, options = self._cycle, self._options
        wanted = max(len(rows) * options.percentage // 100, options.minimum)
        wanted = min(wanted, options.maximum, len(rows))
        start = cycle.random.randrange(len(rows)) if cycle.random is not None and len(rows) else 0
        order = [*rows.tolist()[start:], *rows.tolist()[:start]]
        best = dry_runs.best(dry_runs.candidates(cycle, task, order, allowed, wanted))
        if best is None:
            return False
        cycle.view.measure("total_preemption_attempts", 1)
        local = cycle.statement()
        for victim in best.victims:
            local.evict(victim, REASON)
        if not _pipeline(cycle, local, task, best.node, evicted=True):
            local.discard()
            return False
        statement.merge(local)
        return True


def _pipeline(cycle: Cycle, statement: Statement, task: Task, node: Node, evicted: bool) -> bool:
    try:
        statement.pipeline(task, node, eviction_occurred=evicted)
    except PlacementRefused as refusal:
        cycle.complain(f"{task.key} could not be pipelined to {node.name}: {refusal}")
        return False
    return True


def _of_other_jobs(preemptor: Task) -> Allowed:
    job = _job(preemptor)
    return lambda task: _may_go(preemptor, task) and task.job is not job and _queue_of(task) is job.queue


def _of_same_job(preemptor: Task) -> Allowed:
    return lambda task: _may_go(preemptor, task) and task.job is preemptor.job


def _may_go(preemptor: Task, task: Task) -> bool:
    if task.status not in EVICTABLE_STATUSES or not task.preemptable:
        return False
    return not (preemptor.best_effort and not task.best_effort)


def _is_eligible(cycle: Cycle, task: Task) -> bool:
    """Whether the task may take anything now (spec 05 section 11.4)."""
    if task.preemption_policy == victims.NEVER:
        return False
    if not task.nominated_node:
        return True
    node = cycle.view.nodes_by_name.get(task.nominated_node)
    if node is None or node.row < 0:
        return False
    evaluation = cycle.searches.of(task)
    row = np.array([node.row], dtype=np.intp)
    if len(evaluation.feasible(row, resources=False)):
        return False  # its nominated node takes it: no preemption is needed
    if not len(evaluation.passes_for_eviction(row)):
        return True
    return not any(_makes_way(other, task) for other in node.tasks.values())


def _makes_way(other: Task, task: Task) -> bool:
    """Whether a less important pod is already being preempted there."""
    return other.spec_priority < task.spec_priority and other.deleting and other.preempted


def _queue_of(task: Task) -> Queue | None:
    return task.job.queue if task.job is not None else None


def _job(task: Task) -> Job:
    assert task.job is not None
    return task.job


def _queue(task: Task) -> Queue:
    queue = _queue_of(task)
    assert queue is not None
    return queue
