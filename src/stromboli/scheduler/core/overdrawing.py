"""Binds that would overdraw a queue by what another scheduler has bound while this one decided (ADR 46).

A cycle decides over what was known when it began. When several schedulers share a cluster, some of the room that it
gave out may be gone at its end. What was decided last is taken back first, and of a job all that the cycle decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stromboli.api import core
from stromboli.scheduler.core import amounts
from stromboli.scheduler.core.columns import CPU, EPSILON, MEMORY, PODS, Columns, Floats
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.core.records import Queue, Task
from stromboli.scheduler.core.results import Bind
from stromboli.scheduler.core.statuses import TaskStatus

Limit = Mapping[int, float]
"""By column; what is not named is not limited."""


def overdrawn(mirror: Mirror, policy: Policy, binds: Sequence[Bind]) -> list[Bind]:
    """Those of a cycle's binds that are to be taken back, by what queues hold in all now; nothing is changed."""
    keepers = [option for name in ("capacity", "proportion") if (option := policy.option(name)) is not None]
    if not binds or not any(option.switches.allocatable for option in keepers):
        return []
    tree = any(option.name == "capacity" and option.switches.hierarchy for option in keepers)
    lines = {name: _line(mirror.queues, name) if tree else (name,) for name in mirror.queues}
    limits = _limits(mirror, {above for name in _queues(mirror, binds) for above in lines.get(name, ())})
    held = {name: _held(mirror.queues, [one for one, line in lines.items() if name in line]) for name in limits}
    return _taken_back(mirror, binds, lines, limits, held)


def _taken_back(
    mirror: Mirror,
    binds: Sequence[Bind],
    lines: Mapping[str, Sequence[str]],
    limits: Mapping[str, Limit],
    held: Mapping[str, Floats],
) -> list[Bind]:
    by_job: dict[str, list[tuple[Bind, Task]]] = {}
    for bind in binds:
        task = mirror.task_by_uid(bind.task.uid)
        if task is not None and task.status == TaskStatus.BINDING and task.job is not None:
            by_job.setdefault(bind.task.job_id, []).append((bind, task))
    found: list[Bind] = []
    for decided in reversed(list(by_job.values())):
        wanted: Floats = sum(task.request for _, task in decided)  # type: ignore[assignment]
        job = decided[0][1].job
        assert job is not None
        line = [name for name in lines.get(job.queue_name, ()) if name in limits]
        if any(_exceeds(held[name], limits[name], wanted) for name in line):
            found += [bind for bind, _ in decided]
            for name in line:
                held[name][:] -= wanted
    return found


def _exceeds(held: Floats, limit: Limit, wanted: Floats) -> bool:
    return any(wanted[column] > 0.0 and held[column] > amount + EPSILON for column, amount in limit.items())


def _queues(mirror: Mirror, binds: Iterable[Bind]) -> set[str]:
    """Names of the queues of the binds' jobs."""
    jobs = (mirror.jobs.get(bind.task.job_id) for bind in binds)
    return {job.queue_name for job in jobs if job is not None}


def _line(queues: Mapping[str, Queue], name: str) -> tuple[str, ...]:
    """A queue and those above it."""
    line: list[str] = []
    while name in queues and name not in line:
        line.append(name)
        name = queues[name].resource.spec.parent or "root"
    return tuple(line)


def _held(queues: Mapping[str, Queue], names: Iterable[str]) -> Floats:
    held: Floats = sum(queues[name].allocated + queues[name].elsewhere for name in names)  # type: ignore[assignment]
    return held


def _limits(mirror: Mirror, names: Iterable[str]) -> dict[str, Limit]:
    limits = {name: _limit(mirror.queues[name].resource.spec, mirror.columns) for name in sorted(names)}
    return {name: limit for name, limit in limits.items() if limit}


def _limit(spec: core.QueueSpec, columns: Columns) -> Limit:
    """``spec.capability``, of which cpu and memory of zero or less say nothing, and pods are not looked at."""
    stated = amounts.read_together(spec.capability or {})
    by_column = {column: amount for name, amount in stated.items() if (column := columns.get(name)) is not None}
    silent = {column for column in (CPU, MEMORY) if by_column.get(column, 0.0) <= 0.0} | {PODS}
    return {column: amount for column, amount in by_column.items() if column not in silent}
