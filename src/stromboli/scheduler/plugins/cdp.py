"""cdp: pods that have only just started are not evicted (spec 06 section 20)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from stromboli.api import durations, names
from stromboli.scheduler.core.plugin import Hooks, Plugin, Victims, Vote
from stromboli.scheduler.core.statuses import TaskStatus

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Task
    from stromboli.scheduler.core.view import View


class CooldownProtection(Plugin):
    """One rule for preemption and reclaim. Gang actions do not ask it (quirk, kept)."""

    name: ClassVar[str] = "cdp"

    def open(self, view: View) -> Hooks:
        self._now = view.now
        return Hooks(preemptable=self._spare, reclaimable=self._spare)

    def _spare(self, _evictor: Task, candidates: Sequence[Task]) -> Victims:
        return [task for task in candidates if not self._is_protected(task)], Vote.PERMIT

    def _is_protected(self, task: Task) -> bool:
        """Running, and scheduled less than its cool-down time ago; without a valid time nothing is protected."""
        cooldown = cooldown_time(task)
        if cooldown is None or task.status != TaskStatus.RUNNING:
            return False
        return self._now < task.scheduled_at + cooldown < math.inf


def cooldown_time(task: Task) -> float | None:
    """Seconds, from the label, else from the annotation."""
    written = task.labels.get(names.COOLDOWN_TIME, task.annotations.get(names.COOLDOWN_TIME))
    try:
        return None if written is None else durations.seconds(written)
    except ValueError:
        return None
