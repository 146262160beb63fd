"""allocate: gives admitted jobs nodes, gang by gang (spec 05 section 5)."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.scheduler.actions import domains, nominations
from stromboli.scheduler.actions.placing import domain, place
from stromboli.scheduler.actions.worksheets import Work, Worksheet, worksheet
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.heaps import Heap
from stromboli.scheduler.core.journal import Statement
from stromboli.scheduler.core.opening import has_hard_topology, has_topology
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, Job, Phase, Queue


def allocate(cycle: Cycle, arguments: Mapping[str, object]) -> None:
    """Places tasks of all jobs that can be made ready, or at least pipelined."""
    _Allocation(cycle).run()


class _Allocation:
    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._sheets: dict[str, Worksheet] = {}
        self._jobs: dict[str, Heap[Job]] = {}

    def run(self) -> None:
        combination = self._cycle.combination
        queues = combination.queue_heap()
        self._collect()
        queues.push_all(self._cycle.view.queues[name] for name in self._jobs)
        while queues:
            queue = queues.pop()
            jobs = self._jobs[queue.name]
            if not jobs:
                continue
            if combination.overused(queue):
                self._note_overused(queue, jobs)
                continue
            job = jobs.pop()
            if self._serve(job):
                jobs.push(job)
            queues.push(queue)

    def _note_overused(self, queue: Queue, jobs: Heap[Job]) -> None:
        text = f"queue {queue.name} already holds all it deserves and gets nothing more in this cycle"
        for job in jobs:
            self._cycle.note(job, text)

    def _collect(self) -> None:
        cycle = self._cycle
        for job in cycle.mirror.open_jobs():
            if not self._takes_part(job):
                continue
            sheet = worksheet(cycle.combination, job, queue_gated=True)
            if not sheet:
                continue
            assert job.queue is not None
            self._sheets[job.id] = sheet
            if job.queue.name not in self._jobs:
                self._jobs[job.queue.name] = cycle.combination.job_heap()
            self._jobs[job.queue.name].push(job)

    def _takes_part(self, job: Job) -> bool:
        cycle = self._cycle
        if job.queue is None:
            return False
        if job.is_pending:
            if "enqueue" in cycle.view.action_names:
                return False
            cycle.set_phase(job, Phase.INQUEUE)
        if not cycle.valid(job):
            return False
        return cycle.view.hyper_nodes.ready or not has_topology(job)

    def _serve(self, job: Job) -> bool:
        """One turn of a job; whether it gets another."""
        if has_hard_topology(job) or job.has_sub_groups:
            return self._serve_confined(job)
        return self._serve_anywhere(job)

    def _serve_anywhere(self, job: Job) -> bool:
        sheet = self._sheets[job.id]
        work = sheet.pop()
        statement = self._place_anywhere(work)
        if statement is None or not self._cycle.combination.job_ready(job):
            return False
        statement.commit()
        work.sub_job.nominated_hyper_node = ""
        sheet.push(work)
        return bool(sheet)

    def _place_anywhere(self, work: Work) -> Statement | None:
        if work.sub_job.nominated_hyper_node:
            statement = nominations.use(self._cycle, work)
            if statement is not None:
                return statement
        return place(self._cycle, work, domain(self._cycle, ROOT_HYPER_NODE))

    def _serve_confined(self, job: Job) -> bool:
        solution = domains.search(self._cycle, job, self._sheets[job.id])
        if solution is None or not self._cycle.combination.job_ready(job):
            return False
        solution.statement.commit()
        domains.record(self._cycle, job, solution.decision)
        self._sheets[job.id] = solution.left
        return bool(solution.left)
