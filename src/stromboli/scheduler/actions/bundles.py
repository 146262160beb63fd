"""Bundles: what can be taken from a gang without breaking it, and what breaks it (spec 05 sections 13.3 and 13.4).

A *safe* bundle is surplus. A *whole* bundle costs the victim's whole gang, though only its tasks in the domain are
evicted: the rest is left to the gang's own controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key

import numpy as np

from stromboli.scheduler.core import readiness
from stromboli.scheduler.core.columns import EPSILON, Floats
from stromboli.scheduler.core.records import Job, SubJob, Task

Compare = Callable[[Job, Job], int]
"""< 0 when victims of the left job go first, 0 without opinion."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Tasks of one job that go together, or of which any may go when the bundle is safe."""

    job: Job
    tasks: tuple[Task, ...]
    gain: Floats
    """What the domain gets."""
    cost: Floats
    """What is lost: zeros for a safe bundle."""
    whole: bool


def bundles_of(job: Job, candidates: Iterable[Task], width: int) -> list[Bundle]:
    """The safe and the whole bundle of one victim job, those that are not empty."""
    tasks = sorted(candidates, key=lambda task: (task.priority, task.uid))
    surplus = _Surplus(job)
    safe = tasks if surplus.job < 0 else [task for task in tasks if surplus.take(task)]
    kept = {task.uid for task in safe}
    whole = [task for task in tasks if task.uid not in kept]
    bundles = [safe_bundle(job, safe, width)] if safe else []
    if whole:
        cost = total(job.tasks.values(), width)
        bundles.append(Bundle(job, tuple(whole), total(whole, width), cost, whole=True))
    return bundles


def safe_bundle(job: Job, tasks: Sequence[Task], width: int) -> Bundle:
    """A bundle that costs nothing."""
    return Bundle(job, tuple(tasks), total(tasks, width), np.zeros(width), whole=False)


def total(tasks: Iterable[Task], width: int) -> Floats:
    """Sum of requests."""
    amount = np.zeros(width)
    for task in tasks:
        amount += task.request
    return amount


class _Surplus:
    """What a job can do without, counted down as tasks are taken."""

    def __init__(self, job: Job) -> None:
        self.job = job.ready_count - job.min_member
        self._roles: dict[str, int] = {}
        if job.min_member >= job.role_total:
            self._roles = {
                role: readiness.role_ready_count(job, role) - minimum
                for role, minimum in job.role_minimums.items()
                if minimum > 0
            }
        self._has_groups = bool(job.sub_groups)
        self._spare = {sub_job.id: _spare(sub_job) for sub_job in job.sub_jobs.values()}
        ready = [sub_job for sub_job in job.sub_jobs.values() if sub_job.is_ready]
        self._groups = {
            group: sum(sub_job.group == group for sub_job in ready) - minimum
            for group, minimum in job.sub_groups.items()
        }

    def take(self, task: Task) -> bool:
        """Whether the task is surplus; if so it is counted as gone."""
        if self.job <= 0 or self._roles.get(task.role, 1) <= 0 or not self._group_allows(task):
            return False
        self.job -= 1
        if task.role in self._roles:
            self._roles[task.role] -= 1
        if self._has_groups and task.sub_job is not None:
            self._take_from(task.sub_job)
        return True

    def _group_allows(self, task: Task) -> bool:
        if not self._has_groups:
            return True
        sub_job = task.sub_job
        if sub_job is None:
            return False
        return self._spare[sub_job.id] < 0 or self._groups.get(sub_job.group, 1) > 0

    def _take_from(self, sub_job: SubJob) -> None:
        was_ready = self._spare[sub_job.id] >= 0
        self._spare[sub_job.id] -= 1
        if was_ready and self._spare[sub_job.id] < 0 and sub_job.group in self._groups:
            self._groups[sub_job.group] -= 1


def _spare(sub_job: SubJob) -> int:
    return sub_job.ready_count + sub_job.pending_best_effort - sub_job.minimum


def in_order(bundles: Iterable[Bundle], need: Floats, compare: Compare) -> list[Bundle]:
    """Bundles in the order in which they are taken: safe ones, then by victims' order, then what pays most."""

    def first(left: Bundle, right: Bundle) -> int:
        if left.whole != right.whole:
            return 1 if left.whole else -1
        return (compare(left.job, right.job) if left.job is not right.job else 0) or _by_return(left, right, need)

    return sorted(bundles, key=cmp_to_key(first))


def _by_return(left: Bundle, right: Bundle, need: Floats) -> int:
    keys = [(-_return(bundle, need), bundle.job.id, bundle.tasks[0].uid, len(bundle.tasks)) for bundle in (left, right)]
    return (keys[0] > keys[1]) - (keys[0] < keys[1])


def _return(bundle: Bundle, need: Floats) -> float:
    """What a bundle gives towards the need, for each unit of what it costs."""
    named = need >= EPSILON
    gain = float(np.minimum(bundle.gain[named] / need[named], 1.0).sum())
    cost = float((bundle.cost[named] / need[named]).sum())
    return gain / cost if cost else float("inf")


def approved(bundles: Iterable[Bundle], allowed: Iterable[Task], width: int) -> list[Bundle]:
    """What plugins leave of the bundles: safe ones shrink, whole ones stay whole or go."""
    uids = {task.uid for task in allowed}
    left: list[Bundle] = []
    for bundle in bundles:
        tasks = tuple(task for task in bundle.tasks if task.uid in uids)
        if len(tasks) == len(bundle.tasks):
            left.append(bundle)
        elif tasks and not bundle.whole:
            left.append(safe_bundle(bundle.job, tasks, width))
    return left
