"""reclaim: takes resources from tasks of other queues (spec 05 section 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stromboli.scheduler.actions import victims
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.journal import Statement
from stromboli.scheduler.core.plugin import PlacementRefused
from stromboli.scheduler.core.records import Job, Node, Queue, Task
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.tables import Bools, Rows

REASON = "reclaim"
RUNNING = TaskStatus.RUNNING


def reclaim(cycle: Cycle, arguments: Mapping[str, object]) -> None:
    """Evicts from other queues for the starving jobs of queues that may still grow."""
    _Reclaim(cycle).run()


class _Places:
    """Where a queue may find whom to reclaim from; worked out again only when something about it has changed.

    Within a cycle a task can become Running only in that its eviction is undone.
    """

    def __init__(self, queue: Queue, count: int) -> None:
        self._queue = queue
        self._reclaimees: dict[int, list[Task]] = {}
        """By row, those that are being evicted by now included."""
        self._barren: Bools = np.zeros(count, dtype=bool)
        self._asked: tuple[Rows, Bools | None] | None = None
        self._left: Rows = np.zeros(0, dtype=np.intp)

    def of(self, rows: Rows, hopeless: Bools | None) -> Rows:
        """These rows, less the hopeless ones and those where nobody is left."""
        if self._asked is None or self._asked[0] is not rows or self._asked[1] is not hopeless:
            out = self._barren if hopeless is None else self._barren | hopeless
            self._asked, self._left = (rows, hopeless), rows[~out[rows]]
        return self._left

    def reclaimees(self, node: Node) -> list[Task]:
        """Running tasks there that may go; without any the node is left out from now on."""
        known = self._reclaimees.get(node.row)
        if known is None:
            yielding = (task for task in node.tasks.values() if _yields(task, self._queue))
            known = self._reclaimees[node.row] = victims.offered(yielding)
        left = [task for task in known if task.status == RUNNING]
        if not left:
            self._barren[node.row] = True
            self._asked = None
        return left


class _Reclaim:
    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._places: dict[str, _Places] = {}
        """By queue; void as soon as an eviction is undone."""

    def run(self) -> None:
        cycle = self._cycle
        starving: dict[str, list[Job]] = {
            job.queue.name: [] for job in victims.admitted_jobs(cycle) if job.queue is not None
        }
        for job in victims.starving_jobs(cycle, with_topology=True):
            assert job.queue is not None
            starving[job.queue.name].append(job)
        queues = cycle.combination.queue_heap()
        queues.push_all(cycle.view.queues[name] for name in starving)
        while queues:
            queue = queues.pop()
            if starving[queue.name] and not cycle.combination.overused(queue):
                self._serve(queue, starving[queue.name])

    def _serve(self, queue: Queue, starving: list[Job]) -> None:
        jobs = self._cycle.combination.job_heap()
        jobs.push_all(starving)
        while jobs:
            self._serve_job(queue, jobs.pop())

    def _serve_job(self, queue: Queue, job: Job) -> None:
        combination = self._cycle.combination
        statement = self._cycle.statement()
        tasks = victims.pending_tasks(self._cycle, job)
        while tasks and combination.job_starving(job):
            self._place(statement, queue, tasks.pop())
        if combination.job_pipelined(job):
            statement.commit()
        else:
            self._undo(statement)

    def _undo(self, statement: Statement) -> None:
        if len(statement):
            statement.discard()
            self._places.clear()

    def _place(self, statement: Statement, queue: Queue, task: Task) -> None:
        cycle = self._cycle
        if task.preemption_policy == victims.NEVER or not cycle.combination.preemptive(queue, [task]):
            return
        if cycle.combination.prepare(task) is not None:
            return
        evaluation, places = cycle.searches.of(task), self._places_of(queue)
        rows = places.of(*victims.prospects(evaluation, task))
        for row in evaluation.mine_first(rows):
            node = cycle.view.node_list[row]
            if node is None:
                continue
            reclaimees = places.reclaimees(node)
            if reclaimees and self._place_on(statement, task, node, reclaimees):
                return

    def _places_of(self, queue: Queue) -> _Places:
        places = self._places.get(queue.name)
        if places is None:
            places = self._places[queue.name] = _Places(queue, self._cycle.view.nodes.count)
        return places

    def _place_on(self, statement: Statement, task: Task, node: Node, reclaimees: Sequence[Task]) -> bool:
        cycle = self._cycle
        chosen = cycle.combination.reclaimable(task, reclaimees)
        if not victims.suffice(cycle, task, node, chosen):
            return False
        assert task.job is not None
        local = cycle.statement()
        available = victims.future_of(cycle, node)
        order = victims.VictimQueue(cycle, chosen, task.job)
        while not (room := self._takes(task, node, available)) and order:
            victim = order.pop()
            victims.vacate(available, victim)
            local.evict(victim, REASON)
        if room and self._pipeline(local, task, node):
            statement.merge(local)
            return True
        self._undo(local)
        return False

    def _takes(self, task: Task, node: Node, available: Sequence[float]) -> bool:
        return victims.fits(task, available) and victims.accepts(self._cycle.searches.of(task), node)

    def _pipeline(self, statement: Statement, task: Task, node: Node) -> bool:
        try:
            statement.pipeline(task, node, eviction_occurred=len(statement) > 0)
        except PlacementRefused as refusal:
            self._cycle.complain(f"{task.key} could not be pipelined to {node.name}: {refusal}")
            return False
        return True


def _yields(task: Task, reclaimer: Queue) -> bool:
    """Whether a task may go while it runs: preemptable, and of another queue that gives back."""
    queue = task.job.queue if task.job is not None else None
    return task.preemptable and queue is not None and queue is not reclaimer and queue.reclaimable
