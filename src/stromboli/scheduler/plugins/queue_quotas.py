"""What queue plugins read and say of queues: state, limits, sums over jobs, refusals, metrics (spec 06 section 9.1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api.reasons import NEXT_STEPS, WaitReason, advice
from stromboli.scheduler.core import amounts
from stromboli.scheduler.core.columns import CPU, EPSILON, MEMORY, Floats
from stromboli.scheduler.plugins import reservations

if TYPE_CHECKING:
    from stromboli.api import core
    from stromboli.scheduler.core.records import Job, Queue
    from stromboli.scheduler.core.tables import Bools
    from stromboli.scheduler.core.view import Shortage, View

OPEN = "Open"


@dataclass(frozen=True, slots=True)
class Quota:
    """What a queue may hold, by column, and what it comes from."""

    holder: str
    limit: Floats
    taken: Floats
    capability: Floats
    stated: Floats
    """The least that the queue and those above it state as capability, infinite where none of them says anything."""
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


def left_to_hold(queue: Queue, view: View) -> Floats:
    """What jobs elsewhere leave of a queue's capability."""
    left: Floats = np.maximum(capability_of(queue.resource.spec, view) - queue.elsewhere, 0.0)
    return left


def kept_free_for(queue: Queue, view: View) -> Floats:
    """What of a queue's guarantee is still to be kept free here: its jobs elsewhere have the rest."""
    kept: Floats = np.maximum(guarantee_of(queue.resource.spec, view) - queue.elsewhere, 0.0)
    return kept


def per_queue(view: View, amount: Floats) -> defaultdict[int, Floats]:
    """Sums of a ``[job row, column]`` array over the session's jobs, by queue index."""
    table = view.job_table
    sums: defaultdict[int, Floats] = defaultdict(lambda: np.zeros(amount.shape[1]))
    rows = np.nonzero(table.active[: table.count])[0]
    if len(rows):
        indexes, inverse = np.unique(table.queue[rows], return_inverse=True)
        totals = np.stack([np.bincount(inverse, column) for column in amount[rows].T], axis=1)
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
    view.refuse(job, WaitReason.QUEUE_NOT_OPEN, f"{closed(queue)}; {NEXT_STEPS[WaitReason.QUEUE_NOT_OPEN]}")


def closed(queue: Queue) -> str:
    """What is to be said of a queue that is not open."""
    state = queue.resource.status.state or "not open yet"
    return f"queue {queue.name} is {state}: it takes no work until it is Open"


def report_quota(view: View, job: Job, lacking: Iterable[str]) -> None:
    """The event that names what a queue lacks for the job."""
    text = ", ".join(f"insufficient {name}" for name in lacking)
    view.report(job, "Unschedulable", f"queue resource quota insufficient: {text}")


def refuse_quota(view: View, job: Job, quota: Quota, lacking: list[str]) -> None:
    """Says in numbers what the queue lacks for the job's minimum resources."""
    assert job.min_resources is not None
    found = missing(view, quota, lacking, job.min_resources)
    step = _kept_for_rival(view, quota, lacking) or _left_by_cluster(view, quota, lacking, found)
    refuse_short(view, job, reservations.for_group(found, held_by(found)), found, step)


def refuse_short(view: View, job: Job, text: str, found: Sequence[Shortage], step: str = "") -> None:
    """Says in numbers that a queue has too little for the job, and what can be done."""
    word = WaitReason.QUEUE_QUOTA_INSUFFICIENT
    step = step or advice(word, in_vain=reservations.is_lasting(found))
    view.refuse(job, word, f"{text}. {step}", found)


def missing(view: View, quota: Quota, names: Sequence[str], wanted: Floats) -> list[Shortage]:
    """What a queue lacks of these resources."""
    return reservations.shortages(view, names, wanted, quota.limit, quota.taken, quota.holder)


def held_by(found: Sequence[Shortage]) -> str:
    """Who sets the limit of what is short, for a sentence about it."""
    return f"queue {found[0].holder} may hold {{limit}}"


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


def _left_by_cluster(view: View, quota: Quota, lacking: list[str], found: Sequence[Shortage]) -> str:
    """The advice where no capability but the cluster's size makes something short, and raising one does not help."""
    columns = [view.columns.intern(name) for name in lacking]
    if any(quota.limit[column] + EPSILON >= quota.stated[column] for column in columns):
        return ""
    return advice(WaitReason.CLUSTER_OVERCOMMITTED, in_vain=reservations.is_lasting(found))


def measure(view: View, queue: str, what: str, amount: Floats) -> None:
    """One family of amounts of a queue as metrics; infinite amounts are left out."""
    for basic, series in ((CPU, "milli_cpu"), (MEMORY, "memory_bytes")):
        if np.isfinite(amount[basic]):
            view.measure(f"queue_{what}_{series}", float(amount[basic]), queue_name=queue)
    for column in np.nonzero(amount)[0].tolist():
        if column not in (CPU, MEMORY) and np.isfinite(amount[column]):
            resource = view.columns.names[column]
            view.measure(f"queue_{what}_scalar_resources", float(amount[column]), queue_name=queue, resource=resource)
