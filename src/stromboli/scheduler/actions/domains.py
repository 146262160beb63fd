"""Searching HyperNodes for a job and for its sub-jobs (spec 05 section 6).

Every HyperNode of a group is tried as a dry run: placements are made, remembered as a plan and undone. The best plan of
the first group that has one is then carried out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stromboli.scheduler.actions import nominations
from stromboli.scheduler.actions.placing import domain, place
from stromboli.scheduler.actions.worksheets import Work, Worksheet
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.journal import Plan, Statement
from stromboli.scheduler.core.plugin import PlacementRefused, Purpose
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, Job, SubJob
from stromboli.scheduler.core.tables import Rows


@dataclass(slots=True)
class Decision:
    """Where a job and its sub-jobs go, to be recorded when the statement is committed."""

    hyper_node: str
    sub_jobs: dict[str, str] = field(default_factory=dict)
    """Sub-job id to its new allocated HyperNode."""


@dataclass(slots=True)
class Solution:
    """A dry run of a job that worked."""

    statement: Statement
    left: Worksheet
    decision: Decision


@dataclass(slots=True)
class _Trial:
    plan: Plan
    left: Worksheet
    score: float
    decision: Decision


def search(cycle: Cycle, job: Job, sheet: Worksheet) -> Solution | None:
    """Places a job in the best HyperNode of the first group in which it fits; nothing changes when there is none."""
    groups = cycle.combination.gradient(job, None, ROOT_HYPER_NODE, Purpose.ALLOCATE)
    for group in groups:
        trials = [trial for name in group if (trial := _try_job(cycle, job, name, sheet)) is not None]
        if trials:
            best = max(trials, key=lambda trial: trial.score)  # of equal scores the first in the group
            return _carry_out(cycle, best)
    tried = sum(len(group) for group in groups)
    limit = "" if job.hard_tier is None else f" up to tier {job.hard_tier}"
    what = f"none of the {tried} HyperNodes tried{limit} takes" if tried else f"no HyperNode{limit} is large enough for"
    cycle.note(job, f"{what} what the gang needs")
    return None


def _carry_out(cycle: Cycle, trial: _Trial) -> Solution | None:
    statement = cycle.statement()
    try:
        statement.replay(trial.plan)
    except PlacementRefused as refusal:
        statement.discard()
        cycle.complain(f"the plan for HyperNode {trial.decision.hyper_node} could not be carried out: {refusal}")
        return None
    return Solution(statement, trial.left, trial.decision)


def _try_job(cycle: Cycle, job: Job, hyper_node: str, sheet: Worksheet) -> _Trial | None:
    """The job as a dry run inside one HyperNode."""
    job.fit_errors.clear()
    allocated = {sub_job.id: sub_job.allocated_hyper_node for sub_job in job.sub_jobs.values()}
    left = sheet.copy()
    whole = cycle.statement()
    decision = Decision(hyper_node)
    score = _fill(cycle, job, hyper_node, left, whole, decision)
    for sub_job in job.sub_jobs.values():
        sub_job.allocated_hyper_node = allocated[sub_job.id]
    combination = cycle.combination
    works = len(whole) > 0 and (combination.job_ready(job) or combination.job_pipelined(job))
    trial = _Trial(whole.save(), left, score, decision) if works else None
    whole.discard()
    return trial


def _fill(cycle: Cycle, job: Job, hyper_node: str, left: Worksheet, whole: Statement, decision: Decision) -> float:
    score = 0.0
    while left:
        work = left.pop()
        placed = search_sub_job(cycle, work, hyper_node)
        if placed is None:
            continue
        statement, gained = placed
        whole.merge(statement)
        score += gained
        decision.sub_jobs[work.sub_job.id] = work.sub_job.allocated_hyper_node
        left.push(work)
        if cycle.combination.job_ready(job):
            break
    return score


def search_sub_job(cycle: Cycle, work: Work, inside: str) -> tuple[Statement, float] | None:
    """Places the tasks of a sub-job in the best HyperNode of the first group that takes them (section 6.3)."""
    sub_job = work.sub_job
    if sub_job.nominated_hyper_node:
        statement = nominations.use(cycle, work)
        if statement is not None:
            return statement, 0.0
    for group in cycle.combination.gradient(sub_job.job, sub_job, inside, Purpose.ALLOCATE):
        plans = _try_group(cycle, work, group)
        if plans:
            return _take_best(cycle, work, plans)
    return None


def _try_group(cycle: Cycle, work: Work, group: list[str]) -> dict[str, tuple[Plan, Work]]:
    plans: dict[str, tuple[Plan, Work]] = {}
    for name in group:
        _clear_errors(work.sub_job)
        copy = Work(work.sub_job, list(work.tasks), work.required)
        statement = place(cycle, copy, domain(cycle, name))
        if statement is not None:
            if len(statement):
                plans[name] = (statement.save(), copy)
            statement.discard()
    return plans


def _clear_errors(sub_job: SubJob) -> None:
    sub_job.failed_roles.clear()
    for uid in sub_job.tasks:
        sub_job.job.fit_errors.pop(uid, None)


def _take_best(cycle: Cycle, work: Work, plans: dict[str, tuple[Plan, Work]]) -> tuple[Statement, float] | None:
    name, score = _best(cycle, work.sub_job, list(plans))
    plan, left = plans[name]
    statement = cycle.statement()
    try:
        statement.replay(plan)
    except PlacementRefused as refusal:
        statement.discard()
        cycle.complain(f"the plan for HyperNode {name} could not be carried out: {refusal}")
        return None
    sub_job = work.sub_job
    sub_job.allocated_hyper_node = cycle.view.hyper_nodes.lowest_common_ancestor(sub_job.allocated_hyper_node, name)
    work.tasks = left.tasks
    return statement, score


def _best(cycle: Cycle, sub_job: SubJob, names: list[str]) -> tuple[str, float]:
    rows: dict[str, Rows] = {name: cycle.view.hyper_nodes.rows[name] for name in names}
    scores = cycle.combination.hyper_node_scores(sub_job, rows)
    best = max(names, key=lambda name: scores.get(name, 0.0))
    return best, scores.get(best, 0.0)


def record(cycle: Cycle, job: Job, decision: Decision) -> None:
    """Remembers where a committed job and its sub-jobs are (section 6.4)."""
    common = cycle.view.hyper_nodes.lowest_common_ancestor
    job.allocated_hyper_node = common(job.allocated_hyper_node, decision.hyper_node)
    for id_, hyper_node in decision.sub_jobs.items():
        sub_job = job.sub_jobs.get(id_)
        if sub_job is not None:
            sub_job.allocated_hyper_node = common(sub_job.allocated_hyper_node, hyper_node)
            sub_job.nominated_hyper_node = ""
