"""pdb: PodDisruptionBudgets are kept (spec 06 section 21)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from stromboli.api import core, selectors
from stromboli.scheduler.core.plugin import Hooks, Plugin, Victims, Vote

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Task
    from stromboli.scheduler.core.view import View


class DisruptionBudgets(Plugin):
    """One rule at three points. As victim tasks its answer is *added* to those of other plugins of the tier."""

    name: ClassVar[str] = "pdb"

    def open(self, view: View) -> Hooks:
        self._by_namespace: dict[str, list[core.PodDisruptionBudget]] = {}
        for (namespace, _), budget in view.objects.all(core.PodDisruptionBudget).items():
            if _selects_something(budget.spec.selector):
                self._by_namespace.setdefault(namespace, []).append(budget)
        return Hooks(preemptable=self._spare, reclaimable=self._spare, victim_tasks=[self._within])

    def _spare(self, _evictor: Task, candidates: Sequence[Task]) -> Victims:
        return self._within(candidates), Vote.PERMIT

    def _within(self, candidates: Sequence[Task]) -> list[Task]:
        """Candidates that budgets allow to go, in order. A pod that no budget selects may always go."""
        allowed: dict[str, int] = {}
        victims: list[Task] = []
        for task in candidates:
            affected = [budget for budget in self._by_namespace.get(task.namespace, ()) if _covers(budget, task)]
            for budget in affected:
                allowed[budget.name] = allowed.get(budget.name, budget.status.disruptions_allowed) - 1
            if all(allowed[budget.name] >= 0 for budget in affected):
                victims.append(task)
        return victims


def _selects_something(selector: core.LabelSelector | None) -> bool:
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def _covers(budget: core.PodDisruptionBudget, task: Task) -> bool:
    if task.name in budget.status.disrupted_pods:
        return False
    return selectors.matches_selector(budget.spec.selector, task.labels, absent=False)
