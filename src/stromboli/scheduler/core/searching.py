"""Which nodes take a task, and which of them is best (spec 05 sections 2, 3 and 7.1).

An ``Evaluation`` holds the answers of all filters and scores for one shape over all rows. It is made once a cycle and
afterwards kept current by asking again only about rows written since, so that placing the tasks of a gang one by one
costs a maximum and one row each. Where hooks look at nothing but a node's amounts, a row is asked about once for the
next several tasks of the shape: placing one, or taking it back, is then a step along a forecast. Every node is scored;
of equally good ones the first in node-list order is taken, or with a seed a random one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from stromboli.scheduler.core import near_misses
from stromboli.scheduler.core.accounting import Holding, Ledger
from stromboli.scheduler.core.columns import EPSILON, Floats
from stromboli.scheduler.core.combining import Combination
from stromboli.scheduler.core.fit_errors import FitErrors
from stromboli.scheduler.core.near_misses import NearMiss
from stromboli.scheduler.core.plugin import Filter, Reach, Scope, Score
from stromboli.scheduler.core.reasons import Reason, insufficient
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, Shape, Task
from stromboli.scheduler.core.refusals import Asked, Group, Tally, aborting, shard_filter
from stromboli.scheduler.core.tables import Bools, Rows
from stromboli.scheduler.core.view import View

_IMPOSSIBLE = -np.inf
_LEVELS = 16
"""How many tasks of a shape on one node are looked ahead at once: it costs little more than looking at one."""
_KEPT = 128
"""Evaluations kept at a time. Each holds several arrays over all nodes; the one not used for longest goes first."""
_FEW = 8
"""More changed rows than this are looked at together, without looking ahead."""


@dataclass(slots=True)
class _Rated:
    """A score that is normalised over the candidates, with its raw numbers by row."""

    score: Score
    raw: Floats
    uneven: bool
    """Whether raw numbers differ at all: if not, normalising cannot tell candidates apart."""


@dataclass(slots=True)
class _Forecast:
    """The answers about one node with -1, 0, 1, ... more tasks of the shape; ``level`` is where it stands now."""

    level: int
    allowed: list[bool]
    local: list[float]
    idle: list[bool]
    future: list[bool]
    best_idle: list[float]
    best_future: list[float]


@dataclass(frozen=True, slots=True)
class Choice:
    """The node a task goes to, and whether it has to wait there for resources being released."""

    row: int
    waits: bool


class Evaluation:
    """Filters and scores of one shape (of one job or task, if a plugin's answers depend on it) over all rows."""

    def __init__(
        self, view: View, combination: Combination, ledger: Ledger, task: Task, complain: Callable[[str], None]
    ) -> None:
        self._view = view
        self._nodes = view.nodes
        self._focus: Rows | None = None
        """Rows among which a choice was last asked for; None stands for all."""
        self._hopeful: tuple[Bools, Rows] | None = None
        """Of every row whether eviction may help there, and the rows where it may."""
        self._held = ledger.block(task.shape, Holding.HELD)
        self._forecasts: dict[int, _Forecast] = {}
        self._shape = task.shape
        self._task = task
        self._complain = complain
        count = view.nodes.count
        self._groups: list[Group] = []
        self._cluster_filters: list[Filter] = []
        self._rated: list[_Rated] = []
        self._cluster_scores: list[Score] = []
        self._row_scores: list[Score] = []
        self._static = np.zeros(count)
        self.allowed: Bools = view.nodes.live.copy()
        """Rows that pass all filters, resources left out."""
        self.local: Floats = np.zeros(count)
        """Sum of the scores that need no normalisation."""
        self.fits_idle: Bools = np.zeros(count, dtype=bool)
        self.fits_future: Bools = np.zeros(count, dtype=bool)
        self._best_idle: Floats = np.full(count, _IMPOSSIBLE)
        self._best_future: Floats = np.full(count, _IMPOSSIBLE)
        self._read = len(view.nodes.log)
        self._errors: dict[str, tuple[int, FitErrors]] = {}
        self._columns = np.array(self._shape.compared, dtype=np.intp)
        self._needed: Floats = self._shape.request[self._columns] - EPSILON
        self._start(combination)

    # Making and keeping current

    def _start(self, combination: Combination) -> None:
        rows: Rows = np.arange(self._nodes.count)
        self._start_filters(combination, rows)
        self._start_scores(combination.scores, rows)
        self._fit(rows)
        self._rank(rows)
        self._forecastable = self._can_look_ahead()
        self._hope_lasts = self._lasting()
        self.beyond_amounts = self._looks_beyond_amounts()
        """Whether evictions may change more about a node than its amounts."""

    def _looks_beyond_amounts(self) -> bool:
        return bool(self._cluster_filters) or any(one.filter.reach is Reach.ROW for one in self._kept())

    def _can_look_ahead(self) -> bool:
        hooks: list[Filter | Score] = [*self._row_scores, *(one.filter for one in self._kept())]
        by_state = all(hook.reach in (Reach.NODE, Reach.STATE) and hook.scope is Scope.SHAPE for hook in hooks)
        return by_state and all(rated.score.reach is Reach.NODE for rated in self._rated)

    def _start_filters(self, combination: Combination, rows: Rows) -> None:
        if self._view.shard_mode == "hard" and self._view.shard is not None:
            inside = self._in_shard(rows)
            self._groups.append(Group([Asked(shard_filter(), np.where(inside, 0, 1).astype(np.uint8))], []))
            self.allowed &= inside
        for _, filters in combination.filters:
            group = self._ask(filters, rows)
            if group.kept or group.fresh:
                self._groups.append(group)
                self._cluster_filters.extend(group.fresh)
        for one in self._kept():
            self.allowed &= one.refusals == 0

    def _ask(self, filters: Sequence[Filter], rows: Rows) -> Group:
        group = Group([], [])
        for filter_ in filters:
            if filter_.concerns is not None and not filter_.concerns(self._task):
                continue
            if filter_.reach is Reach.CLUSTER:
                group.fresh.append(filter_)
                continue
            refusals = filter_.refuse(self._task, rows)
            if refusals is not None:
                group.kept.append(Asked(filter_, refusals))
        return group

    def _kept(self) -> Iterator[Asked]:
        for group in self._groups:
            yield from group.kept

    def _start_scores(self, scores: Iterable[Score], rows: Rows) -> None:
        for score in scores:
            if score.concerns is not None and not score.concerns(self._task):
                continue
            if score.reach is Reach.CLUSTER:
                self._cluster_scores.append(score)
                continue
            numbers = self._rate(score, rows)
            if numbers is None:
                continue
            if score.normalise is not None:
                self._rated.append(_Rated(score, numbers, _differ(numbers)))
            elif score.reach is Reach.NODE:
                self._static += numbers
            else:
                self._row_scores.append(score)
                self.local += numbers
        self.local += self._static

    def _rate(self, score: Score, rows: Rows) -> Floats | None:
        try:
            return score.rate(self._task, rows)
        except Exception as error:  # a plugin's fault must not stop the cycle; it is named once
            self._complain(f"score {score.name} failed and is left out: {error!r}")
            return None

    def serve(self, task: Task) -> None:
        """The task on whose behalf questions are asked from now on: another one of the same shape."""
        self._task = task

    def catch_up(self) -> None:
        """Takes note of everything written to node rows since; questions do so by themselves."""
        log = self._nodes.log
        if self._read == len(log):
            return
        dirty = self._follow(log)
        self._read = len(log)
        if not dirty:
            return
        if len(dirty) <= _FEW and self._forecastable:
            self._forecast(dirty)
        else:
            self._ask_again(np.array(sorted(dirty), dtype=np.intp))

    def _follow(self, log: list[tuple[int, Floats | None, int]]) -> set[int]:
        """Rows about which forecasts say nothing; the others are brought up to date."""
        dirty: set[int] = set()
        forecasts, held = self._forecasts, self._held
        for position in range(self._read, len(log)):
            row, block, sign = log[position]
            forecast = forecasts.get(row)
            if forecast is None:
                dirty.add(row)
            elif block is held and 0 <= forecast.level + sign < _LEVELS:
                forecast.level += sign
                self._take(row, forecast)
            else:
                del forecasts[row]
                dirty.add(row)
        return dirty

    def _take(self, row: int, forecast: _Forecast) -> None:
        level = forecast.level
        self.allowed[row] = forecast.allowed[level]
        self.local[row] = forecast.local[level]
        self.fits_idle[row] = forecast.idle[level]
        self.fits_future[row] = forecast.future[level]
        self._best_idle[row] = forecast.best_idle[level]
        self._best_future[row] = forecast.best_future[level]

    def _forecast(self, dirty: set[int]) -> None:
        """Looks ahead on changed rows, and on those likely to be chosen next: many cost little more than one."""
        rows: Rows = np.array(sorted(dirty | self._likely()), dtype=np.intp)
        with self._nodes.imagined(rows, self._held, _LEVELS, first_level=-1) as imagined:
            allowed = self._imagine_filters(rows, imagined)
            local = np.repeat(self._static[rows], _LEVELS)
            for score in self._row_scores:
                numbers = self._rate(score, imagined)
                if numbers is not None:
                    local += numbers
            idle, future = self._suffice(self._nodes.idle, imagined), self._suffice(self._nodes.future, imagined)
        best_idle = np.where(allowed & future & idle, local, _IMPOSSIBLE)
        best_future = np.where(allowed & future & ~idle, local, _IMPOSSIBLE)
        answers = (allowed, local, idle, future, best_idle, best_future)
        by_row = [each.reshape(len(rows), _LEVELS).tolist() for each in answers]
        for row, *forecast in zip(rows.tolist(), *by_row, strict=True):
            self._forecasts[row] = _Forecast(1, *forecast)
            if row in dirty:
                self._take(row, self._forecasts[row])

    def _likely(self) -> set[int]:
        """Rows that rank high where tasks are being placed, and are not forecast yet."""
        rows = self._focus
        ranking = self._best_idle if rows is None else self._best_idle[rows]
        if len(ranking) > _LEVELS:
            best = _first_of_the_best(ranking, _LEVELS)
            rows = best if rows is None else rows[best]
        candidates = range(len(ranking)) if rows is None else rows.tolist()
        return {row for row in candidates if row not in self._forecasts and self._best_idle[row] > _IMPOSSIBLE}

    def _imagine_filters(self, rows: Rows, imagined: Rows) -> Bools:
        """Which imagined rows pass. Refusals are not kept: explanations ask again about the rows forecast."""
        allowed = self._nodes.live[imagined]
        for one in self._kept():
            if one.filter.reach is Reach.STATE:
                refusals = one.filter.refuse(self._task, imagined)
                if refusals is not None:
                    allowed &= refusals == 0
            else:
                allowed &= np.repeat(one.refusals[rows] == 0, _LEVELS)
        return allowed

    def _settle(self) -> None:
        """Brings the refusals of rows that were only forecast up to date."""
        rows: Rows = np.array(sorted(self._forecasts), dtype=np.intp)
        if len(rows):
            self._refresh_filters(rows)

    def _ask_again(self, rows: Rows) -> None:
        for row in rows.tolist():
            self._forecasts.pop(row, None)
        self._refresh_filters(rows)
        self._refresh_scores(rows)
        self._fit(rows)
        self._rank(rows)

    def _refresh_filters(self, rows: Rows) -> None:
        allowed = self._nodes.live[rows]
        for one in self._kept():
            if one.filter.reach is not Reach.NODE:
                refusals = one.filter.refuse(self._task, rows)
                one.refusals[rows] = 0 if refusals is None else refusals
            allowed &= one.refusals[rows] == 0
        self.allowed[rows] = allowed

    def _refresh_scores(self, rows: Rows) -> None:
        if self._row_scores:
            total = self._static[rows]
            for score in self._row_scores:
                numbers = self._rate(score, rows)
                if numbers is not None:
                    total += numbers
            self.local[rows] = total
        for rated in self._rated:
            if rated.score.reach is not Reach.NODE:
                numbers = self._rate(rated.score, rows)
                if numbers is not None:
                    rated.raw[rows] = numbers
                    rated.uneven = _differ(rated.raw)

    def _fit(self, rows: Rows) -> None:
        self.fits_idle[rows] = self._suffice(self._nodes.idle, rows)
        self.fits_future[rows] = self._suffice(self._nodes.future, rows)

    def _suffice(self, amounts: Floats, rows: Rows) -> Bools:
        """Where there is enough of everything; column by column, for there are few of them and many rows."""
        enough = np.ones(len(rows), dtype=bool)
        for column, needed in zip(self._shape.compared, self._needed.tolist(), strict=True):
            enough &= amounts[rows, column] > needed
        return enough

    def _rank(self, rows: Rows) -> None:
        # Idle resources may be promised to tasks that wait: what counts first is what will be left.
        possible, local = self.allowed[rows] & self.fits_future[rows], self.local[rows]
        idle = self.fits_idle[rows]
        self._best_idle[rows] = np.where(possible & idle, local, _IMPOSSIBLE)
        self._best_future[rows] = np.where(possible & ~idle, local, _IMPOSSIBLE)

    # Choosing

    def feasible(self, rows: Rows | None, *, resources: bool = True) -> Rows:
        """Rows that pass all filters, those depending on other nodes included, and have or will have the resources."""
        self.catch_up()
        mask = self.allowed & self.fits_future if resources else self.allowed
        candidates: Rows = np.nonzero(mask)[0] if rows is None else rows[mask[rows]]
        return self._pass_cluster_filters(candidates)

    def _pass_cluster_filters(self, candidates: Rows) -> Rows:
        for filter_ in self._cluster_filters:
            if not len(candidates):
                break
            refusals = filter_.refuse(self._task, candidates)
            if refusals is not None:
                candidates = candidates[refusals == 0]
        return candidates

    def choose(self, rows: Rows | None, random: Random | None) -> Choice | None:
        """The best node among rows (None: all) with idle resources, else with resources to come."""
        self._focus = rows
        self.catch_up()
        if self._simple(random):
            return self._choose_fast(rows)
        for ranking, waits in ((self._best_idle, False), (self._best_future, True)):
            if rows is None:
                candidates: Rows = np.nonzero(ranking > _IMPOSSIBLE)[0]
            else:
                candidates = rows[ranking[rows] > _IMPOSSIBLE]
            row = self.best_of(self._pass_cluster_filters(candidates), random)
            if row is not None:
                return Choice(row, waits)
        return None

    def _simple(self, random: Random | None) -> bool:
        soft = self._view.shard_mode == "soft" and self._view.shard is not None
        return not (random or soft or self._cluster_filters or self._cluster_scores or self._uneven())

    def _uneven(self) -> bool:
        return any(rated.uneven for rated in self._rated)

    def _choose_fast(self, rows: Rows | None) -> Choice | None:
        for ranking, waits in ((self._best_idle, False), (self._best_future, True)):
            among = ranking if rows is None else ranking[rows]
            if not len(among):
                return None
            position = int(among.argmax())
            if among[position] > _IMPOSSIBLE:
                return Choice(position if rows is None else int(rows[position]), waits)
        return None

    def best_of(self, candidates: Rows, random: Random | None) -> int | None:
        """The best of some rows: in the shard first when sharding is soft."""
        self.catch_up()
        for group in self._by_shard(candidates):
            if len(group) == 1:
                return int(group[0])
            if len(group):
                return _pick(group, self.totals(group), random)
        return None

    def totals(self, candidates: Rows) -> Floats:
        """The final scores of candidates, normalised among them."""
        total: Floats = self.local[candidates].copy()
        for rated in self._rated:
            assert rated.score.normalise is not None
            total += rated.score.normalise(rated.raw[candidates])
        for score in self._cluster_scores:
            numbers = self._rate(score, candidates)
            if numbers is not None:
                total += numbers if score.normalise is None else score.normalise(numbers)
        return total

    def by_score(self, candidates: Rows) -> Rows:
        """Candidates by falling score, equal ones in node-list order; in the shard first when sharding is soft."""
        self.catch_up()
        groups = [group[np.argsort(-self.totals(group), kind="stable")] for group in self._by_shard(candidates)]
        return np.concatenate(groups) if groups else candidates

    def mine_first(self, candidates: Rows) -> Rows:
        """Candidates with those of the own shard first when sharding is soft, in node-list order otherwise."""
        groups = self._by_shard(candidates)
        return groups[0] if len(groups) == 1 else np.concatenate(groups)

    def choose_for_eviction(self, rows: Rows, random: Random | None) -> int | None:
        """The best node among rows, given that refusals which eviction may help do not count; idle resources first."""
        self.catch_up()
        candidates = self.passes_for_eviction(rows)
        candidates = candidates[self.fits_future[candidates]]
        idle = self.fits_idle[candidates]
        for group in (candidates[idle], candidates[~idle]):
            row = self.best_of(group, random)
            if row is not None:
                return row
        return None

    def _by_shard(self, candidates: Rows) -> list[Rows]:
        if self._view.shard_mode != "soft" or self._view.shard is None:
            return [candidates]
        inside = self._in_shard(candidates)
        return [candidates[inside], candidates[~inside]]

    def _in_shard(self, rows: Rows) -> Bools:
        shard = self._view.shard or frozenset()
        names = (self._view.node_list[row] for row in rows.tolist())
        return np.array([node is not None and node.name in shard for node in names], dtype=bool)

    # Explaining

    def errors(self, rows: Rows | None, hyper_node: str, *, resources: bool = True) -> FitErrors:
        """Why the refused ones among rows were refused."""
        self.catch_up()
        key = f"{hyper_node}/{resources}"
        known = self._errors.get(key)
        if known is not None and known[0] == self._read and not self._cluster_filters:
            return known[1]
        errors = self._count(rows, hyper_node, resources=resources)
        self._errors[key] = (self._read, errors)
        return errors

    def near_miss(self, rows: Rows | None) -> NearMiss | None:
        """Where least is missing, among rows that pass all filters."""
        self.catch_up()
        passing: Rows = np.nonzero(self.allowed)[0] if rows is None else rows[self.allowed[rows]]
        return near_misses.nearest(self._view, self._task, self._pass_cluster_filters(passing))

    def _count(self, rows: Rows | None, hyper_node: str, *, resources: bool) -> FitErrors:
        self._settle()
        if rows is None:
            rows = np.nonzero(self._nodes.live)[0]
        tally = Tally(rows, self._nodes.count)
        if resources:
            tally.refuse(*self._shortages(rows))
        for group in self._groups:
            tally.ask(group, self._task)
        where = "" if hyper_node == ROOT_HYPER_NODE else hyper_node
        return FitErrors(tally.refused_count, tally.counts, hyper_node=where, unresolvable=tally.unresolvable)

    def _shortages(self, rows: Rows) -> tuple[Rows, list[Reason]]:
        short = self._nodes.future[np.ix_(rows, self._columns)] <= self._needed
        first = np.where(short.any(axis=1), short.argmax(axis=1) + 1, 0)
        names = self._view.columns.names
        return first, [insufficient(names[column]) for column in self._shape.compared]

    def passes_for_eviction(self, rows: Rows | None) -> Rows:
        """Rows refused by nothing, or only with codes that eviction may help; resources are not looked at."""
        if self._hopeful is None or not self._hope_lasts:
            self.catch_up()
            self._settle()
            hopeful = self._not_hopeless()
            self._hopeful = hopeful, np.nonzero(hopeful)[0]
        mask, every = self._hopeful
        return self._cluster_for_eviction(every if rows is None else rows[mask[rows]])

    def _not_hopeless(self) -> Bools:
        mask: Bools = self._nodes.live.copy()
        decided = np.zeros(self._nodes.count, dtype=bool)
        for group in self._groups:
            refused = np.zeros(self._nodes.count, dtype=bool)
            for one in group.kept:
                refused |= one.refusals > 0
                mask &= decided | ~aborting(one.refusals, one.filter.reasons)
            decided |= refused
        return mask

    def _lasting(self) -> bool:
        """Whether placements change nothing about which nodes are hopeless."""
        if len(self._groups) > 1:
            return False
        changing = (one.filter for one in self._kept() if one.filter.reach is not Reach.NODE)
        return not any(reason.code.aborts for filter_ in changing for reason in filter_.reasons)

    def _cluster_for_eviction(self, candidates: Rows) -> Rows:
        for filter_ in self._cluster_filters:
            refusals = filter_.refuse(self._task, candidates)
            if refusals is not None:
                candidates = candidates[~aborting(refusals, filter_.reasons)]
        return candidates


def _differ(numbers: Floats) -> bool:
    return bool(len(numbers)) and bool((numbers != numbers[0]).any())


def _first_of_the_best(ranking: Floats, count: int) -> Rows:
    """Positions of the highest numbers; of equal ones the first, as they are chosen."""
    least = np.partition(ranking, -count)[-count]
    above = np.nonzero(ranking > least)[0]
    equal = np.nonzero(ranking == least)[0]
    return np.concatenate([above, equal[: count - len(above)]])


def _pick(candidates: Rows, scores: Floats, random: Random | None) -> int:
    best = int(scores.argmax())
    if random is None:
        return int(candidates[best])
    tied = candidates[scores == scores[best]]
    return int(tied[random.randrange(len(tied))])


class Searches:
    """The evaluations of a cycle."""

    def __init__(self, view: View, combination: Combination, ledger: Ledger, complain: Callable[[str], None]) -> None:
        self._view = view
        self._combination = combination
        self._ledger = ledger
        self._complain = complain
        self._known: dict[tuple[int, str], Evaluation] = {}
        self._latest: tuple[Task, Evaluation] | None = None
        """A task is asked about several times before it is the next one's turn."""
        hooks: list[Filter | Score] = [one for _, filters in combination.filters for one in filters]
        hooks.extend(combination.scores)
        narrow = [hook for hook in hooks if hook.reach is not Reach.CLUSTER and hook.scope is not Scope.SHAPE]
        self._scope = _narrowest(hook.scope for hook in narrow if hook.concerns is None)
        self._narrow_for_some = [hook for hook in narrow if hook.concerns is not None]
        self._scopes: dict[int, Scope] = {}

    def of(self, task: Task) -> Evaluation:
        """The current evaluation for a task."""
        if self._latest is not None and self._latest[0] is task:
            return self._latest[1]
        key = self._key(task, task.shape)
        evaluation = self._known.pop(key, None)
        if evaluation is None:
            evaluation = Evaluation(self._view, self._combination, self._ledger, task, self._complain)
            if len(self._known) >= _KEPT:
                del self._known[next(iter(self._known))]
        else:
            evaluation.serve(task)
        self._known[key] = evaluation  # last in the dictionary: used last
        self._latest = task, evaluation
        return evaluation

    def _key(self, task: Task, shape: Shape) -> tuple[int, str]:
        match self._scope_for(task) if self._narrow_for_some else self._scope:
            case Scope.SHAPE:
                return shape.index, ""
            case Scope.JOB:
                return shape.index, task.job_id
            case Scope.TASK:
                return shape.index, task.uid

    def _scope_for(self, task: Task) -> Scope:
        """On what the answers for a shape depend, given whom each hook concerns."""
        scope = self._scopes.get(task.shape.index)
        if scope is None:
            concerned = (hook.scope for hook in self._narrow_for_some if hook.concerns and hook.concerns(task))
            scope = self._scopes[task.shape.index] = _narrowest([self._scope, *concerned])
        return scope


def _narrowest(scopes: Iterable[Scope]) -> Scope:
    given = set(scopes)
    return next((scope for scope in (Scope.TASK, Scope.JOB) if scope in given), Scope.SHAPE)
