"""The rung of queues: each level from the job's queue to the root, with state, share and head-room by resource."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stromboli.cli.rehearsing.rungs import UNLIMITED, Rung, amount, vector
from stromboli.scheduler.core.columns import EPSILON, PODS, Floats
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.records import Job, Queue
from stromboli.scheduler.core.view import Sample

ROOT = "root"


def queue_rung(cycle: Cycle, job: Job, samples: Sequence[Sample]) -> Rung:
    """Each level from the job's queue to the root."""
    lines: list[str] = []
    for depth, queue in enumerate(lineage(cycle, job)):
        place = "" if depth else _place(cycle, job)
        lines.extend("  " * depth + line for line in _queue_lines(cycle, job, queue, samples, place))
    return Rung("Queue", tuple(lines))


def lineage(cycle: Cycle, job: Job) -> Iterator[Queue]:
    """The job's queue and those above it."""
    seen: set[str] = set()
    name = job.queue_name
    while name in cycle.mirror.queues and name not in seen:
        seen.add(name)
        queue = cycle.mirror.queues[name]
        yield queue
        name = queue.resource.spec.parent or (ROOT if name != ROOT else "")


def _place(cycle: Cycle, job: Job) -> str:
    """Whose turn is before the job's, when others wait in its queue, too."""
    waiting = [
        other
        for other in cycle.mirror.session_jobs.values()
        if other.queue_name == job.queue_name and (other.is_pending or not other.is_ready)
    ]
    if job not in waiting or len(waiting) < 2:
        return ""
    place = cycle.combination.job_ordering.sorted(waiting).index(job) + 1
    return f", the job is number {place} of {len(waiting)} that wait in it"


def _queue_lines(cycle: Cycle, job: Job, queue: Queue, samples: Sequence[Sample], place: str) -> Iterator[str]:
    share = _sample(samples, "queue_share", queue.name)
    told = f", share {share:.2f}" if share is not None else ""
    state = queue.resource.status.state or "not open yet"
    yield f"{queue.name}: {state}, weight {queue.resource.spec.weight or 0}{told}{place}"
    wanted = job.min_resources if job.min_resources is not None else np.zeros(cycle.view.columns.width)
    held = _held(cycle, queue)
    spec = queue.resource.spec
    deserved, guarantee = (vector(cycle, listed) for listed in (spec.deserved, spec.guarantee.resource))
    limit = most(cycle, queue)
    for column in np.nonzero(wanted >= EPSILON)[0].tolist():
        if column == PODS:
            continue
        due = amount(cycle, column, deserved[column])
        due = due if due != UNLIMITED else _worked_out(cycle, column, queue, samples)
        left = limit[column] - held[column]
        yield (
            f"  {cycle.view.columns.names[column]}: {amount(cycle, column, held[column])} in use, "
            f"{amount(cycle, column, wanted[column])} wanted, deserved {due}, "
            f"guaranteed {amount(cycle, column, guarantee[column])}, at most {amount(cycle, column, limit[column])}"
            f"{_left(amount(cycle, column, max(left, 0.0)))}"
        )


def _left(amount: str) -> str:
    return "" if amount == UNLIMITED else f", {amount} left"


def most(cycle: Cycle, queue: Queue) -> Floats:
    """The most that a queue may hold: its capability, which for the root is at most what the cluster has."""
    limit = vector(cycle, queue.resource.spec.capability)
    return np.fmin(limit, cycle.view.total) if queue.name == ROOT else limit


def _worked_out(cycle: Cycle, column: int, queue: Queue, samples: Sequence[Sample]) -> str:
    """What the policy says the queue deserves (proportion works it out from the weights)."""
    name = cycle.view.columns.names[column]
    series = {"cpu": "milli_cpu", "memory": "memory_bytes"}.get(name)
    value = _sample(samples, f"queue_deserved_{series}", queue.name) if series else None
    return UNLIMITED if value is None else amount(cycle, column, value)


def owner_of_limit(cycle: Cycle, job: Job) -> str:
    """The lowest queue above the job whose own capability is too small for it; empty when there is none."""
    wanted = job.min_resources
    if wanted is None:
        return ""
    for queue in lineage(cycle, job):
        capability = vector(cycle, queue.resource.spec.capability)
        total = _held(cycle, queue) + wanted
        if (total > capability + EPSILON).any():
            return queue.name
    return ""


def _held(cycle: Cycle, queue: Queue) -> Floats:
    """What a queue and those below it hold."""
    total = queue.allocated.copy()
    for other in cycle.mirror.queues.values():
        if other is not queue and queue.name in _above(cycle, other):
            total += other.allocated
    return total


def _above(cycle: Cycle, queue: Queue) -> set[str]:
    seen: set[str] = set()
    name = queue.resource.spec.parent or (ROOT if queue.name != ROOT else "")
    while name and name not in seen:
        seen.add(name)
        parent = cycle.mirror.queues.get(name)
        name = (parent.resource.spec.parent or (ROOT if name != ROOT else "")) if parent else ""
    return seen


def _sample(samples: Sequence[Sample], name: str, queue: str) -> float | None:
    wanted = (("queue_name", queue),)
    return next((sample.value for sample in samples if sample.name == name and sample.labels == wanted), None)
