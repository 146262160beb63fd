"""Searching HyperNodes for a job and for its sub-jobs (spec 05 section 6).

The best HyperNode of the first group in which one works is taken, as if all of the group had been tried. Scores are
about the cluster before the gang is placed, so mostly they are known beforehand: HyperNodes are tried from the best
downwards, and when one works those that cannot beat it are left alone. A trial that has won already stays as it is;
otherwise it is remembered as a plan, undone, and carried out again when no other was better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from stromboli.scheduler.actions import nominations
from stromboli.scheduler.actions.placing import domain, place
from stromboli.scheduler.actions.worksheets import Work, Worksheet
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.journal import Plan, Statement
from stromboli.scheduler.core.plugin import PlacementRefused, Purpose
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, Job, SubJob
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.tables import Rows

_UNKNOWN = float("inf")
"""The score of a HyperNode that may turn out to be anything."""


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
    """A HyperNode that works: what is to be done there, done already or as a plan."""

    at: int
    statement: Statement
    plan: Plan
    left: Worksheet
    score: float
    decision: Decision

    @property
    def rank(self) -> tuple[float, int]:
        """Least is best: of equal scores the first in the group."""
        return -self.score, self.at


def search(cycle: Cycle, job: Job, sheet: Worksheet) -> Solution | None:
    """Places a job in the best HyperNode of the first group in which it fits; nothing changes when there is none."""
    groups = cycle.combination.gradient(job, None, ROOT_HYPER_NODE, Purpose.ALLOCATE)
    for group in groups:
        trial = _search_group(cycle, job, group, sheet)
        if trial is not None:
            return _carry_out(cycle, trial)
    tried = sum(len(group) for group in groups)
    limit = "" if job.hard_tier is None else f" up to tier {job.hard_tier}"
    what = f"none of the {tried} HyperNodes tried{limit} takes" if tried else f"no HyperNode{limit} is large enough for"
    cycle.note(job, f"{what} what the gang needs")
    return None


def _search_group(cycle: Cycle, job: Job, group: Sequence[str], sheet: Worksheet) -> _Trial | None:
    best: _Trial | None = None
    errors = _LastErrors(job, len(group) - 1)
    for at, at_most in _most_promising_first(cycle, job, group, sheet):
        if best is not None:
            if best.rank < (-at_most, at):
                break
            best.statement.discard()
        trial = _try_job(cycle, job, at, group[at], sheet)
        errors.note(at)
        if trial is not None and (best is None or trial.rank < best.rank):
            best = trial
        elif trial is not None:
            trial.statement.discard()
    if best is None:
        errors.restore()
    return best


def _most_promising_first(
    cycle: Cycle, job: Job, group: Sequence[str], sheet: Worksheet
) -> Iterator[tuple[int, float]]:
    """Positions in the group, with the score that is not exceeded there."""
    sub_job = None if job.has_sub_groups else sheet.only()
    if sub_job is None or len(group) == 1 or not _is_foreseeable(sub_job) or sub_job.nominated_hyper_node:
        return ((at, _UNKNOWN) for at in range(len(group)))
    limits = [_score_at_most(cycle, sub_job, name) for name in group]
    return ((at, limits[at]) for at in sorted(range(len(group)), key=lambda at: -limits[at]))


def _is_foreseeable(sub_job: SubJob) -> bool:
    """Whether scores of HyperNodes do not depend on which others are candidates: nothing is placed yet."""
    return sub_job.counts[TaskStatus.PENDING] == len(sub_job.tasks)


def _score_at_most(cycle: Cycle, sub_job: SubJob, inside: str) -> float:
    groups = cycle.combination.gradient(sub_job.job, sub_job, inside, Purpose.ALLOCATE)
    return max((score for group in groups for score in _scores(cycle, sub_job, group)), default=0.0)


class _LastErrors:
    """When no HyperNode of a group works, what counts is why the last of them did not."""

    def __init__(self, job: Job, last: int) -> None:
        self._job, self._last = job, last
        self._kept: dict[str, object] = {}

    def note(self, at: int) -> None:
        """The HyperNode at this position has just been tried."""
        if at == self._last:
            self._kept = dict(self._job.fit_errors)

    def restore(self) -> None:
        """All have been tried in vain."""
        self._job.fit_errors.clear()
        self._job.fit_errors.update(self._kept)


def _carry_out(cycle: Cycle, trial: _Trial) -> Solution | None:
    if not trial.statement and not _replay(cycle, trial.statement, trial.plan, trial.decision.hyper_node):
        return None
    return Solution(trial.statement, trial.left, trial.decision)


def _replay(cycle: Cycle, statement: Statement, plan: Plan, hyper_node: str) -> bool:
    try:
        statement.replay(plan)
    except PlacementRefused as refusal:
        statement.discard()
        cycle.complain(f"the plan for HyperNode {hyper_node} could not be carried out: {refusal}")
        return False
    return True


def _try_job(cycle: Cycle, job: Job, at: int, hyper_node: str, sheet: Worksheet) -> _Trial | None:
    """The job as a dry run inside one HyperNode, which stays in force if it works."""
    job.fit_errors.clear()
    allocated = {sub_job.id: sub_job.allocated_hyper_node for sub_job in job.sub_jobs.values()}
    left = sheet.copy()
    whole = cycle.statement()
    decision = Decision(hyper_node)
    score = _fill(cycle, job, hyper_node, left, whole, decision)
    for sub_job in job.sub_jobs.values():
        sub_job.allocated_hyper_node = allocated[sub_job.id]
    combination = cycle.combination
    if len(whole) and (combination.job_ready(job) or combination.job_pipelined(job)):
        return _Trial(at, whole, whole.save(), left, score, decision)
    whole.discard()
    return None


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
        placed = (_take_first if _is_foreseeable(sub_job) else _take_best)(cycle, work, group)
        if placed is not None:
            return placed
    return None


def _take_first(cycle: Cycle, work: Work, group: Sequence[str]) -> tuple[Statement, float] | None:
    """The first that works, from the highest score downwards: nobody else can be better."""
    scores = _scores(cycle, work.sub_job, group)
    errors = _LastErrors(work.sub_job.job, len(group) - 1)
    for at in sorted(range(len(group)), key=lambda at: -scores[at]):
        statement, left = _try(cycle, work, group[at])
        errors.note(at)
        if statement is not None:
            _settle_in(cycle, work, group[at], left)
            return statement, scores[at]
    errors.restore()
    return None


def _take_best(cycle: Cycle, work: Work, group: Sequence[str]) -> tuple[Statement, float] | None:
    """The best of all that work; scores are asked for about these only."""
    plans: dict[str, tuple[Plan, Work]] = {}
    for name in group:
        statement, left = _try(cycle, work, name)
        if statement is not None:
            plans[name] = (statement.save(), left)
            statement.discard()
    if not plans:
        return None
    names = list(plans)
    scores = _scores(cycle, work.sub_job, names)
    at = max(range(len(names)), key=lambda at: scores[at])
    plan, left = plans[names[at]]
    statement = cycle.statement()
    if not _replay(cycle, statement, plan, names[at]):
        return None
    _settle_in(cycle, work, names[at], left)
    return statement, scores[at]


def _try(cycle: Cycle, work: Work, hyper_node: str) -> tuple[Statement | None, Work]:
    """A sub-job placed in one HyperNode, if anything of it can be, and what is then left."""
    _clear_errors(work.sub_job)
    left = Work(work.sub_job, list(work.tasks), work.required)
    statement = place(cycle, left, domain(cycle, hyper_node))
    return (statement if statement else None), left


def _clear_errors(sub_job: SubJob) -> None:
    sub_job.failed_roles.clear()
    for uid in sub_job.tasks:
        sub_job.job.fit_errors.pop(uid, None)


def _settle_in(cycle: Cycle, work: Work, hyper_node: str, left: Work) -> None:
    sub_job = work.sub_job
    common = cycle.view.hyper_nodes.lowest_common_ancestor
    sub_job.allocated_hyper_node = common(sub_job.allocated_hyper_node, hyper_node)
    work.tasks = left.tasks


def _scores(cycle: Cycle, sub_job: SubJob, names: Iterable[str]) -> list[float]:
    known = cycle.view.hyper_nodes.rows
    rows: dict[str, Rows] = {name: known[name] for name in names if name in known}
    scores = cycle.combination.hyper_node_scores(sub_job, rows)
    return [scores.get(name, 0.0) for name in names]


def record(cycle: Cycle, job: Job, decision: Decision) -> None:
    """Remembers where a committed job and its sub-jobs are (section 6.4)."""
    common = cycle.view.hyper_nodes.lowest_common_ancestor
    job.allocated_hyper_node = common(job.allocated_hyper_node, decision.hyper_node)
    for id_, hyper_node in decision.sub_jobs.items():
        sub_job = job.sub_jobs.get(id_)
        if sub_job is not None:
            sub_job.allocated_hyper_node = common(sub_job.allocated_hyper_node, hyper_node)
            sub_job.nominated_hyper_node = ""
