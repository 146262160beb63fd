"""What queue plugins read and say of queues: state, limits, sums over jobs, refusals, metrics (spec 06 section 9.1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stromboli.scheduler.core import amounts
from stromboli.scheduler.core.columns import CPU, EPSILON, MEMORY, Floats
from stromboli.scheduler.plugins import reservations

if TYPE_CHECKING:
    from stromboli.api import core
    from stromboli.scheduler.core.records import Job, Queue
    from stromboli.scheduler.core.tables import Bools
    from stromboli.scheduler.core.view import View

OPEN = "Open"


@dataclass(frozen=True, slots=True)
class Quota:
    """What a queue may hold, by column, and what it comes from."""

    holder: str
    limit: Floats
    taken: Floats
    capability: Floats
    rivals: Collection[str]
    """Queues whose guarantees are kept free from this one."""


def is_open(queue: Queue) -> bool:
    """Whether the queue takes new work."""
    return queue.resource.status.state == OPEN


def capability_of(spec: core.QueueSpec, view: View) -> Floats:
    """``spec.capability`` by column, infinite where it says nothing; cpu and memory of zero or less say nothing."""
    limit = view.columns.vector(amounts.read_together(spec.capability or {}), missing=np.inf)
    for column in (CPU, MEMORY):
        if limit[column] <= 0.0:
            limit[column] = np.inf
    return limit


def guarantee_of(spec: core.QueueSpec, view: View) -> Floats:
    """``spec.guarantee.resource`` by column, zero where it says nothing."""
    return view.columns.vector(amounts.read_together(spec.guarantee.resource or {}))


def per_queue(view: View, amount: Floats) -> defaultdict[int, Floats]:
    """Sums of a ``[job row, column]`` array over the session's jobs, by queue index."""
    table = view.job_table
    sums: defaultdict[int, Floats] = defaultdict(lambda: np.zeros(amount.shape[1]))
    rows = np.nonzero(table.active[: table.count])[0]
    if len(rows):
        indexes, inverse = np.unique(table.queue[rows], return_inverse=True)
        totals = np.zeros((len(indexes), amount.shape[1]))
        np.add.at(totals, inverse, amount[rows])
        sums.update(zip(indexes.tolist(), totals, strict=True))
    return sums


def elastic(view: View) -> Floats:
    """Per job row what it holds beyond its minimum resources."""
    table = view.job_table
    return np.maximum(table.allocated[: table.count] - table.minimum[: table.count], 0.0)


def deserved_of(spec: core.QueueSpec, view: View) -> Floats:
    """``spec.deserved`` by column, zero where it says nothing."""
    return view.columns.vector(amounts.read_together(spec.deserved or {}))


def named(resources: Mapping[str, str | int | float], view: View) -> Bools:
    """Which columns a resource list names, with zero amounts as well."""
    result = np.zeros(view.columns.width, dtype=bool)
    result[[view.columns.intern(name) for name in amounts.read(resources)]] = True
    return result


def refuse_closed(view: View, job: Job, queue: Queue) -> None:
    """Says that the queue takes nothing."""
    state = queue.resource.status.state or "not open yet"
    view.refuse(job, "QueueNotOpen", f"queue {queue.name} is {state}: it takes no work until it is Open.")


def refuse_quota(view: View, job: Job, quota: Quota, lacking: list[str]) -> None:
    """Says what the queue lacks for the job, as an event and, with numbers, for its condition."""
    text = ", ".join(f"insufficient {name}" for name in lacking)
    view.report(job, "Unschedulable", f"queue resource quota insufficient: {text}")
    wanted, known = job.min_resources, [name for name in lacking if view.columns.get(name) is not None]
    if wanted is not None and known:
        holder = f"queue {quota.holder} may hold {{limit}}"
        text = reservations.numbers(view, known, wanted, quota.limit, quota.taken, holder)
    advice = "Wait for the queue's running work to end, raise its capability, or ask for less."
    view.refuse(job, "QueueQuotaInsufficient", f"{text}. {_kept_for_rival(view, quota, known) or advice}")


def _kept_for_rival(view: View, quota: Quota, lacking: list[str]) -> str:
    """Who is guaranteed most of the first resource that guarantees, and not the capability, make short."""
    for name in lacking:
        column = view.columns.intern(name)
        if quota.limit[column] + EPSILON >= quota.capability[column]:
            continue
        promised = {rival: guarantee_of(view.queues[rival].resource.spec, view)[column] for rival in quota.rivals}
        # The first by name of those with most, so that the text does not change from cycle to cycle.
        rival = min(promised, key=lambda one: (-promised[one], one), default="")
        if rival and promised[rival] >= EPSILON:
            amount = amounts.write({name: float(promised[rival])})[name]
            return (
                f"Queue {rival} is guaranteed {name} {amount}, kept free for it: lower its guarantee, or ask for less."
            )
    return ""


def measure(view: View, queue: str, what: str, amount: Floats) -> None:
    """One family of amounts of a queue as metrics; infinite amounts are left out."""
    for basic, series in ((CPU, "milli_cpu"), (MEMORY, "memory_bytes")):
        if np.isfinite(amount[basic]):
            view.measure(f"queue_{what}_{series}", float(amount[basic]), queue_name=queue)
    for column in np.nonzero(amount)[0].tolist():
        if column not in (CPU, MEMORY) and np.isfinite(amount[column]):
            resource = view.columns.names[column]
            view.measure(f"queue_{what}_scalar_resources", float(amount[column]), queue_name=queue, resource=resource)
