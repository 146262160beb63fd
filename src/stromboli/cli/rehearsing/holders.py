"""The rung of those who have what a job waits for: whoever wants room for it sees whom to ask, suspend or delete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stromboli.api.kinds import JOBS
from stromboli.cli.rehearsing.rungs import Rung, amount
from stromboli.scheduler.core.columns import EPSILON, PODS, Floats
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.records import Job, Phase

TAKEN = "Taken"
MOST = 3
WAITS_ITSELF = " (admitted, and waits itself)"


def holders_rung(cycle: Cycle, job: Job) -> Rung:
    """Jobs that hold, or are promised, most of what the job asks for, and what pods of nobody's job hold."""
    columns = _columns(cycle, job)
    total = np.maximum(cycle.view.total, EPSILON)
    holders = [(other, held, note) for other, held, note in _holders(cycle, job) if (held[columns] >= EPSILON).any()]
    holders.sort(key=lambda one: (-float((one[1] / total)[columns].max()), one[0].id))
    lines = [f"{called(other)}: {_amounts(cycle, held, columns)}{note}" for other, held, note in holders[:MOST]]
    if len(holders) > MOST:
        lines.append(f"and {len(holders) - MOST} more")
    rest = _of_nobody(cycle)
    if (rest[columns] >= EPSILON).any():
        lines.append(f"pods of no job: {_amounts(cycle, rest, columns)}")
    return Rung(TAKEN, tuple(lines or ["nothing: no other job holds what it asks for"]))


def called(job: Job) -> str:
    """``namespace/name`` of the vcjob, or of the PodGroup that stands for something else."""
    group = job.pod_group
    owners = group.metadata.owner_references if group is not None else ()
    name = next((owner.name for owner in owners if owner.kind == JOBS.kind), job.name)
    return f"{job.namespace}/{name}"


def _columns(cycle: Cycle, job: Job) -> Sequence[int]:
    """Resources that the job asks for, pods apart."""
    asked = sum((task.request for task in job.tasks.values()), np.zeros(cycle.view.columns.width))
    if job.min_resources is not None:
        asked = asked + job.min_resources
    return [column for column in np.nonzero(asked >= EPSILON)[0].tolist() if column != PODS]


def _holders(cycle: Cycle, job: Job) -> Iterator[tuple[Job, Floats, str]]:
    for other in cycle.mirror.session_jobs.values():
        if other is job:
            continue
        if other.phase is Phase.INQUEUE and other.min_resources is not None and not other.is_ready:
            yield other, other.min_resources, WAITS_ITSELF
        else:
            yield other, other.allocated, ""


def _of_nobody(cycle: Cycle) -> Floats:
    nodes = cycle.view.nodes
    used: Floats = nodes.used[nodes.live].sum(axis=0)
    return used - sum((other.allocated for other in cycle.mirror.jobs.values()), np.zeros_like(used))


def _amounts(cycle: Cycle, held: Floats, columns: Sequence[int]) -> str:
    names = cycle.view.columns.names
    return ", ".join(f"{names[at]} {amount(cycle, at, held[at])}" for at in columns if held[at] >= EPSILON)
