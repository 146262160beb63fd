"""What admitted jobs have been promised and do not hold yet (spec 06 section 4.2); used by several plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.scheduler.core import amounts
from stromboli.scheduler.core.columns import EPSILON, PODS
from stromboli.scheduler.core.records import Phase
from stromboli.scheduler.core.view import Shortage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Job, Queue
    from stromboli.scheduler.core.tables import Bools
    from stromboli.scheduler.core.view import View


def without_gated(job: Job) -> Floats:
    """The job's minimum resources less the requests of its gated tasks, not below zero (spec 04 section 10)."""
    table, row = job.table, job.row
    amount: Floats = np.maximum(table.minimum[row] - table.gated[row], 0.0)
    return amount


def promised(view: View) -> Floats:
    """Per job row (``[job row, column]``) what is still reserved: minimum less allocated less gated, not below zero.

    Counts jobs that are Inqueue, and those Running with at least ``minMember`` tasks allocated; zeros for the others.
    """
    table = view.job_table
    count = table.count
    missing = np.maximum(table.minimum[:count] - table.allocated[:count], 0.0)
    missing[~table.minimum_named[:count]] = 0.0
    missing = np.maximum(missing - table.gated[:count], 0.0)
    missing[~(_in_queue(view) | _running_in_full(view))] = 0.0
    return missing


def admitted_in_full(view: View) -> Floats:
    """As :func:`promised`, but an Inqueue job counts its whole minimum even where it already holds some of it.

    Quirk of overcommit, kept: it differs from what the queue plugins count.
    """
    table = view.job_table
    count = table.count
    amounts = promised(view)
    whole = np.maximum(table.minimum[:count] - table.gated[:count], 0.0)
    in_queue = _in_queue(view)
    amounts[in_queue] = whole[in_queue]
    return amounts


def _in_queue(view: View) -> Bools:
    table = view.job_table
    count = table.count
    result: Bools = table.active[:count] & table.has_minimum[:count] & (table.phase[:count] == Phase.INQUEUE)
    return result


def _running_in_full(view: View) -> Bools:
    table = view.job_table
    count = table.count
    enough = table.allocated_tasks[:count] >= table.min_member[:count]
    running = table.phase[:count] == Phase.RUNNING
    result: Bools = table.active[:count] & table.has_minimum[:count] & running & enough
    return result


def waits_in_vain(job: Job) -> bool:
    """Whether an earlier cycle has found that the job cannot start: its PodGroup says that it is unschedulable."""
    conditions = job.pod_group.status.conditions if job.pod_group is not None else ()
    return any(item.type == "Unschedulable" and item.status == "True" for item in conditions)


class LesserPromises:
    """What queues have promised to jobs of lower priority that wait in vain; it keeps no job out before them.

    Promises are those with which the cycle opened and those made in it since. They are summed up when first asked for,
    and are the same whenever that is.
    """

    def __init__(self, view: View) -> None:
        self._at_opening: Floats = promised(view)
        self._by_queue: dict[str, dict[int, Floats]] = {}

    def before(self, job: Job) -> Floats:
        """What the job's queue has promised to jobs of lower priority that wait in vain."""
        found = np.zeros(self._at_opening.shape[1])
        if job.queue is None:
            return found
        for priority, amount in self._of(job.queue).items():
            if priority < job.priority:
                found += amount
        return found

    def add(self, job: Job) -> None:
        """A job was admitted."""
        if job.queue is not None and job.min_resources is not None and waits_in_vain(job):
            self._add(self._of(job.queue), job, without_gated(job))

    def _of(self, queue: Queue) -> dict[int, Floats]:
        """Sums by priority."""
        sums = self._by_queue.get(queue.name)
        if sums is None:
            sums = self._by_queue[queue.name] = {}
            for job in queue.jobs.values():
                amount = self._at_opening[job.row]
                if amount.any() and waits_in_vain(job):
                    self._add(sums, job, amount)
        return sums

    @staticmethod
    def _add(sums: dict[int, Floats], job: Job, amount: Floats) -> None:
        sums[job.priority] = sums.get(job.priority, 0.0) + amount


def shortages(
    view: View, names: Sequence[str], wanted: Floats, limit: Floats, taken: Floats, holder: str = ""
) -> list[Shortage]:
    """What is missing of each resource that is known; ``holder`` is the queue whose limit it is, if it is a queue's."""
    columns = [column for name in names if (column := view.columns.get(name)) is not None]

    def written(column: int, amount: Floats) -> str:
        name = view.columns.names[column]
        return amounts.write({name: max(float(amount[column]), 0.0)})[name]

    return [
        Shortage(
            holder,
            view.columns.names[column],
            *(written(column, amount) for amount in (wanted, limit, taken, wanted + taken - limit)),
        )
        for column in columns
    ]


def is_lasting(found: Sequence[Shortage]) -> bool:
    """Whether something is short even when nothing is taken: then waiting does not help."""
    return any(each.is_lasting for each in found)


def for_group(found: Sequence[Shortage], holder: str) -> str:
    """What is short for the least that a group needs; ``holder`` says, with ``{limit}``, who sets the limit."""
    return f"The group needs {_listed(found, 'wanted')}; {_short(found, holder)}"


def for_pod(found: Sequence[Shortage], holder: str) -> str:
    """What is short for one pod."""
    return f"{_short(found, holder)} for a pod that needs {_listed(found, 'wanted')}"


def _short(found: Sequence[Shortage], holder: str) -> str:
    limit = holder.format(limit=_listed(found, "limit"))
    return f"{limit}, of which {_listed(found, 'taken')} is taken: short by {_listed(found, 'short')}"


def _listed(found: Sequence[Shortage], what: str) -> str:
    return ", ".join(f"{each.resource} {getattr(each, what)}" for each in found)


def exceeded_names(view: View, amount: Floats, limit: Floats, requested: Floats) -> list[str]:
    """Names of requested resources of which ``amount`` is above ``limit`` (no epsilon, no pods): cpu, memory, rest."""
    over = (requested > 0.0) & (amount > limit)
    over[PODS] = False
    if not over.any():
        return []
    names = view.columns.names
    return [names[column] for column in np.nonzero(over)[0]]


def within_some(amount: Floats, limit: Floats, requested: Floats) -> bool:
    """Whether ``amount`` is within ``limit`` for some requested resource that is not zero in both (no pods)."""
    asked = (requested > 0.0) & ((amount >= EPSILON) | (limit >= EPSILON))
    asked[PODS] = False
    return bool((asked & (amount < limit + EPSILON)).any())
