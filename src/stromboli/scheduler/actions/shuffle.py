"""shuffle: evicts whom plugins want moved (spec 05 section 17)."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.scheduler.actions import victims
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.statuses import TaskStatus

REASON = "shuffle"


def shuffle(cycle: Cycle, arguments: Mapping[str, object]) -> None:
    """Evicts every Running task that the plugins name; gangs and queues are the plugins' concern."""
    running = (
        task for job in cycle.view.jobs.values() for task in job.tasks.values() if task.status == TaskStatus.RUNNING
    )
    statement = cycle.statement()
    for task in cycle.combination.victim_tasks(victims.offered(running)):
        if task.status == TaskStatus.RUNNING and task.node is not None:
            statement.evict(task, REASON)
    statement.commit()
