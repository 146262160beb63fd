"""Whom a queue may take resources from, as capacity sees it (spec 06 section 10.5).

One rule is added to those of the original, so that reclaiming comes to an end. Where the reclaimer's queue, and every
ancestor through which it may reclaim, would have more of something than it deserves, the victim's queue must still be
the better off of the two after the eviction, as measured by what each deserves, and so must its ancestors against those
of the reclaimer. Otherwise the two would only change places, and soon change them back. An ancestor of both gives
neither a right against the other. Resources that none of them names are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stromboli.scheduler.core.columns import CPU, EPSILON, MEMORY, PODS, Floats
from stromboli.scheduler.core.plugin import EvictionContext, Victims, Vote
from stromboli.scheduler.plugins.queue_hierarchy import ROOT

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Task
    from stromboli.scheduler.core.tables import Bools
    from stromboli.scheduler.core.view import View
    from stromboli.scheduler.plugins.queue_accounts import Account


class Reclaiming:
    """The rule over the accounts of one cycle; ``level`` is how many levels of ancestors are looked at as well."""

    def __init__(self, view: View, accounts: Mapping[str, Account], level: int) -> None:
        self._view = view
        self._accounts = accounts
        self._level = level

    def victims(self, reclaimer: Task, candidates: Sequence[Task]) -> Victims:
        """The candidates that may go, in victim order."""
        mine = self._account(reclaimer)
        if mine is None or reclaimer.job is None:
            return [], Vote.REJECT
        chosen: list[Task] = []
        held = _Held()
        for task in self._view.in_victim_order(reclaimer.job, candidates):
            theirs = self._account(task)
            if theirs is None or not common(task.request, reclaimer.request, pods=False):
                continue
            if self._may_go(task, theirs, reclaimer, mine, held):
                chosen.append(task)
                for account in (theirs, *self._checked(theirs, mine)):
                    held.subtract(account, task.request)
        return chosen, Vote.PERMIT

    def surplus(self, context: EvictionContext, candidates: Sequence[Task]) -> Victims:
        """Candidates of which their own queues have more than they deserve, unless the gang would change places."""
        chosen: list[Task] = []
        mine = self._accounts.get(context.job.queue_name)
        wanted = sum((task.request for task in context.demand), start=np.zeros(self._view.columns.width))
        held = _Held()
        for task in candidates:
            theirs = self._account(task)
            if theirs is None or not _guaranteed(theirs, held.of(theirs) - task.request):
                continue
            if mine and context.demand and self._would_change_places(theirs, held, wanted, mine, task.request):
                continue
            if is_immediate(task, theirs) or exceeds(held.of(theirs), theirs, task.request):
                chosen.append(task)
                for account in (theirs, *self._near(theirs)):
                    held.subtract(account, task.request)
        return chosen, Vote.PERMIT

    def _account(self, task: Task) -> Account | None:
        return self._accounts.get(task.job.queue_name) if task.job is not None else None

    def _may_go(self, task: Task, theirs: Account, reclaimer: Task, mine: Account, held: _Held) -> bool:
        has = held.of(theirs)
        if not _guaranteed(theirs, has - task.request):
            return False
        if is_immediate(task, theirs):
            if self._are_relatives(theirs, mine) and not common(reclaimer.request, mine.deserved):
                return False
        elif not exceeds(has, theirs, task.request):
            return False
        if self._would_change_places(theirs, held, reclaimer.request, mine, task.request):
            return False
        return all(
            is_immediate(task, above) or exceeds(held.of(above), above, task.request)
            for above in self._checked(theirs, mine)
        )

    def _would_change_places(
        self, theirs: Account, held: _Held, wanted: Floats, mine: Account, request: Floats
    ) -> bool:
        """Whether the taker would have too much of something that changes hands, and more than the victim keeps."""
        takers = [mine, *(above for above in self._near(mine) if above not in theirs.line)]
        greedy = (request > 0.0) & np.any([account.deserves for account in takers], axis=0)
        greedy[PODS] = False
        for account in takers:
            greedy &= account.allocated + wanted > account.deserved + EPSILON
        if not greedy.any():
            return False
        losers = [theirs, *(above for above in self._near(theirs) if above not in mine.line)]
        return any(
            bool((greedy & _is_worse_off(held.of(loser) - request, loser, taker.allocated + wanted, taker)).any())
            for loser, taker in zip(losers, takers, strict=False)
        )

    def _near(self, account: Account) -> list[Account]:
        return [above for above in account.line[1 : 1 + self._level] if above.name != ROOT]

    def _are_relatives(self, left: Account, right: Account) -> bool:
        near = self._near(right)
        return any(above in near for above in self._near(left))

    def _checked(self, theirs: Account, mine: Account) -> list[Account]:
        """Ancestors of the victim's queue that must have too much as well, level by level."""
        return [
            above
            for level, above in enumerate(theirs.line[1 : 1 + self._level], start=1)
            if above.name != ROOT and not (level < len(mine.line) and mine.line[level] is above)
        ]


class _Held:
    """What accounts still hold as victims are taken off."""

    def __init__(self) -> None:
        self._left: dict[str, Floats] = {}

    def of(self, account: Account) -> Floats:
        return self._left.get(account.name, account.allocated)

    def subtract(self, account: Account, amount: Floats) -> None:
        self._left[account.name] = self.of(account) - amount


def common(left: Floats, right: Floats, *, pods: bool = True) -> bool:
    """Whether two amounts have something in common."""
    both = (left >= EPSILON) & (right >= EPSILON)
    if not pods:
        both[PODS] = False
    return bool(both.any())


def is_immediate(task: Task, account: Account) -> bool:
    """Whether the queue deserves nothing of what the task holds; a deserved number of pods meets every task."""
    return not common(task.request, account.deserved)


def exceeds(held: Floats, account: Account, request: Floats) -> bool:
    """Whether more than deserved is held of something that the request names and the queue knows."""
    relevant = (request > 0.0) & account.deserves
    for basic in (CPU, MEMORY):
        relevant[basic] = request[basic] > 0.0 and account.deserved[basic] >= EPSILON
    relevant[PODS] = False
    return bool((relevant & (held > account.spared)).any())


def _guaranteed(account: Account, left: Floats) -> bool:
    return bool((account.guaranteed < left + EPSILON).all())


def _is_worse_off(left: Floats, loser: Account, taken: Floats, taker: Account) -> Bools:
    """Of which resources one keeps less than another has, as measured by what each deserves."""
    nothing_due = (loser.deserved < EPSILON) & (taker.deserved < EPSILON)
    result: Bools = np.where(nothing_due, left < taken, _part(left, loser) < _part(taken, taker))
    return result


def _part(amount: Floats, account: Account) -> Floats:
    """Amounts as parts of what is deserved; infinite where nothing is."""
    due = account.deserved
    return np.divide(amount, due, out=np.full_like(due, np.inf), where=due >= EPSILON)
