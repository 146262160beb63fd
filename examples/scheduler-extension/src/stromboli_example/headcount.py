"""headcount: an action that decides nothing and counts the jobs that wait (metric ``volcano_example_waiting``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stromboli.scheduler.core.cycle import Cycle


def headcount(cycle: Cycle, arguments: Mapping[str, object]) -> None:
    """One sample a cycle."""
    waiting = sum(not job.is_ready for job in cycle.view.jobs.values())
    cycle.view.measure("example_waiting", waiting)
