"""What queues really hold of cards, for their status: a slice counts as it was cut (spec 06 section 29.2).

Jobs are looked at again when something about them has changed, so that a cycle costs what is going on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stromboli.scheduler.core.records import Job, Task
from stromboli.scheduler.core.statuses import ALLOCATED_STATUSES
from stromboli.scheduler.core.view import View

Amounts = dict[str, float]
Difference = Callable[[Task], Mapping[str, float] | None]
"""By how much a task holds other amounts than it asks for; None for tasks without cards."""
_MEMORY = "deviceshare-queues"


def differences(view: View, of_task: Difference) -> dict[str, Amounts]:
    """By queue and resource."""
    known = view.memory.setdefault(_MEMORY, {})
    assert isinstance(known, dict)
    by_job: dict[str, Amounts] = known
    for job in view.unsettled():
        found = _of_job(job, of_task)
        if found:
            by_job[job.id] = found
        else:
            by_job.pop(job.id, None)
    total: dict[str, Amounts] = {}
    for job_id, amounts in list(by_job.items()):
        known_job = view.jobs.get(job_id)
        if known_job is None or known_job.queue is None:
            del by_job[job_id]
        else:
            _add(total.setdefault(known_job.queue.name, {}), amounts)
    return total


def _of_job(job: Job, of_task: Difference) -> Amounts:
    total: Amounts = {}
    for task in job.tasks.values():
        difference = of_task(task) if task.status in ALLOCATED_STATUSES else None
        if difference:
            _add(total, difference)
    return total


def _add(total: Amounts, amounts: Mapping[str, float]) -> None:
    for resource, amount in amounts.items():
        total[resource] = total.get(resource, 0.0) + amount
