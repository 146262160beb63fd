"""gangpreempt and gangreclaim: room for a whole gang inside one HyperNode (spec 05 sections 13 to 15).

Domain by domain, bundles of victims are added up until the gang might fit; then it is tried out. The first plan that
works is carried out, and its sub-jobs are promised the HyperNodes of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stromboli.scheduler.actions import victims
from stromboli.scheduler.actions.bundles import Bundle, Compare, approved, bundles_of, in_order, total
from stromboli.scheduler.actions.placing import Domain, domain
from stromboli.scheduler.actions.worksheets import Work, Worksheet, worksheet
from stromboli.scheduler.core import policy
from stromboli.scheduler.core.columns import EPSILON
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.journal import Plan, Statement
from stromboli.scheduler.core.opening import has_hard_topology
from stromboli.scheduler.core.plugin import Eviction, EvictionContext, PlacementRefused, Purpose
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, Job, Task
from stromboli.scheduler.core.tables import Rows

DEFAULT_DOMAINS = 8


@dataclass(frozen=True, slots=True)
class Rules:
    """What tells the two actions apart."""

    kind: Eviction
    may_go: Callable[[Cycle, Job, Task], bool]
    """Whether a task may be a victim of a job."""
    order: Callable[[Cycle, Job], Compare]
    """The order of victim jobs, given the job that takes."""
    may_take: Callable[[Cycle, Job, Sequence[Task]], bool]
    """Whether a job may take anything for these tasks."""


@dataclass(slots=True)
class _Planned:
    plan: Plan
    hyper_nodes: dict[str, str] = field(default_factory=dict)
    """Sub-job id to the HyperNode it was placed in."""


def evict_for_gangs(cycle: Cycle, arguments: Mapping[str, object], rules: Rules) -> None:
    """Serves the starving jobs of every queue, each once."""
    domains = policy.integer(arguments, "maxDomains", DEFAULT_DOMAINS)
    if domains <= 0:
        cycle.complain(f"{rules.kind.value}: maxDomains must be at least 1, {DEFAULT_DOMAINS} is used")
        domains = DEFAULT_DOMAINS
    allow_whole = policy.boolean(arguments, "allowWholeBundle", True)
    by_queue: dict[str, list[Job]] = {}
    for job in victims.starving_jobs(cycle, with_topology=True):
        assert job.queue is not None
        by_queue.setdefault(job.queue.name, []).append(job)
    for queue in cycle.combination.queue_ordering.sorted(cycle.view.queues[name] for name in by_queue):
        jobs = cycle.combination.job_heap()
        jobs.push_all(by_queue[queue.name])
        while jobs:
            _Gang(cycle, jobs.pop(), rules, domains, allow_whole=allow_whole).serve()


class _Gang:
    """The search for one starving job."""

    def __init__(self, cycle: Cycle, job: Job, rules: Rules, domains: int, *, allow_whole: bool) -> None:
        self._cycle, self._job, self._rules = cycle, job, rules
        self._domains = domains
        self._allow_whole = allow_whole
        self._width = cycle.view.columns.width
        self._sheet = worksheet(cycle.combination, job, queue_gated=False)
        self._was_ready = cycle.combination.job_ready(job)
        self._demand = self._demanded()
        self._need = total(self._demand, self._width)

    def serve(self) -> None:
        """Carries out the first plan that works, or changes nothing."""
        if not (self._need >= EPSILON).any() or not self._rules.may_take(self._cycle, self._job, self._demand):
            return
        for name in self._candidates():
            planned = self._search(name)
            if planned is not None and self._carry_out(planned):
                return

    def _demanded(self) -> list[Task]:
        works = self._sheet.works()
        if self._was_ready:
            works = works[:1]
        return [task for work in works for task in reversed(work.tasks)]

    def _candidates(self) -> list[str]:
        groups = self._cycle.combination.gradient(self._job, None, ROOT_HYPER_NODE, Purpose.EVICT)
        names = list(dict.fromkeys(name for group in groups for name in group))
        if not names and not has_hard_topology(self._job):
            names = [ROOT_HYPER_NODE]
        return names[: self._domains]

    def _search(self, name: str) -> _Planned | None:
        """The first plan that works in a domain, bundles being added up in their order.

        The last bundle goes as it is, even where a part of it would make room enough: bundles, not tasks, are what is
        added up (spec 05 section 13.5), and sessions recorded from the original hold a safe bundle to it, three surplus
        tasks going for a gang that needs one of them. Nor is there a part of a whole bundle worth keeping: its gang is
        broken by the first task that goes. What may be kept is chosen before, by plugins that shrink safe bundles.
        """
        where = domain(self._cycle, name)
        if where.is_empty:
            return None
        rows = self._cycle.view.hyper_nodes.rows[name] if where.rows is None else where.rows
        nodes = self._cycle.view.nodes
        capacity = (nodes.idle[rows] + nodes.releasing[rows]).sum(axis=0)
        chosen: list[Task] = []
        for bundle in self._bundles(name, rows):
            chosen.extend(bundle.tasks)
            capacity = capacity + bundle.gain
            if (self._need < capacity + EPSILON).all():
                planned = self._simulate(name, chosen)
                if planned is not None:
                    return planned
        return None

    def _bundles(self, name: str, rows: Rows) -> list[Bundle]:
        cycle, job = self._cycle, self._job
        by_job: dict[str, list[Task]] = {}
        for node in cycle.view.row_nodes(rows):
            for task in node.tasks.values():
                if task.job is not None and self._rules.may_go(cycle, job, task):
                    by_job.setdefault(task.job.id, []).append(task)
        found = [
            bundle for id_, tasks in by_job.items() for bundle in bundles_of(cycle.view.jobs[id_], tasks, self._width)
        ]
        compare = self._rules.order(cycle, job)
        offered = in_order(found, self._need, compare)
        context = EvictionContext(self._rules.kind, job, name, self._demand)
        allowed = cycle.combination.unified_evictable(context, [task for each in offered for task in each.tasks])
        left = in_order(approved(offered, allowed, self._width), self._need, compare)
        return [bundle for bundle in left if self._allow_whole or not bundle.whole]

    # Trying out

    def _simulate(self, name: str, chosen: Sequence[Task]) -> _Planned | None:
        """What would be done with these victims gone; leaves everything as it was."""
        statement = self._cycle.statement()
        for victim in chosen:
            statement.evict(victim, self._rules.kind.value)
        hyper_nodes = self._place_all(statement, name, self._sheet.copy(), evicted=bool(chosen))
        planned = None if hyper_nodes is None else _Planned(statement.save(), hyper_nodes)
        statement.discard()
        return planned

    def _place_all(self, statement: Statement, name: str, left: Worksheet, *, evicted: bool) -> dict[str, str] | None:
        hyper_nodes: dict[str, str] = {}
        combination = self._cycle.combination
        while left:
            work = left.pop()
            where = self._place_sub_job(statement, work, name, evicted=evicted)
            if where is None:
                return None
            hyper_nodes[work.sub_job.id] = where
            if self._was_ready or combination.job_pipelined(self._job):
                break
        return hyper_nodes if hyper_nodes and combination.job_pipelined(self._job) else None

    def _place_sub_job(self, statement: Statement, work: Work, inside: str, *, evicted: bool) -> str | None:
        names = [inside]
        if has_hard_topology(self._job):
            groups = self._cycle.combination.gradient(self._job, work.sub_job, inside, Purpose.EVICT)
            names = [name for group in groups for name in group]
        for name in names:
            local = self._cycle.statement()
            where = domain(self._cycle, name)
            if not where.is_empty and self._place_tasks(local, work, where, evicted=evicted):
                statement.merge(local)
                return name
            local.discard()
        return None

    def _place_tasks(self, statement: Statement, work: Work, where: Domain, *, evicted: bool) -> bool:
        for task in reversed(work.tasks):
            if not self._place(statement, task, where, evicted=evicted):
                return False
        combination = self._cycle.combination
        return combination.sub_job_ready(work.sub_job) or combination.sub_job_pipelined(work.sub_job)

    def _place(self, statement: Statement, task: Task, where: Domain, *, evicted: bool) -> bool:
        cycle, queue = self._cycle, self._job.queue
        assert queue is not None
        if not cycle.combination.allocatable(queue, task) or cycle.combination.prepare(task) is not None:
            return False
        row = cycle.searches.of(task).choose_for_eviction(self._worth_trying(task, where), cycle.random)
        node = cycle.view.node_list[row] if row is not None else None
        if node is None:
            return False
        try:
            statement.pipeline(task, node, eviction_occurred=evicted)
        except PlacementRefused:
            return False
        return True

    def _worth_trying(self, task: Task, where: Domain) -> Rows:
        rows = victims.worth_trying(self._cycle, task)
        if where.rows is None:
            return rows
        return where.rows[np.isin(where.rows, rows)] if len(rows) else where.rows

    # Carrying out

    def _carry_out(self, planned: _Planned) -> bool:
        statement = self._cycle.statement()
        try:
            statement.replay(planned.plan)
        except PlacementRefused as refusal:
            statement.discard()
            self._cycle.complain(f"the plan for {self._job.id} could not be carried out: {refusal}")
            return False
        if not self._cycle.combination.job_pipelined(self._job):
            statement.discard()
            return False
        statement.commit()
        for id_, hyper_node in planned.hyper_nodes.items():
            self._job.sub_jobs[id_].nominated_hyper_node = hyper_node
        return True
