"""conformance: critical pods are never evicted (spec 06 section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from stromboli.scheduler.core.plugin import Hooks, Plugin, Victims, Vote

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Task
    from stromboli.scheduler.core.view import View

CRITICAL_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
SYSTEM_NAMESPACE = "kube-system"


def spare_critical(candidates: Sequence[Task]) -> Victims:
    """The candidates that are not critical; an empty list is an answer, too: nobody may be evicted."""
    spared = [
        task
        for task in candidates
        if task.priority_class not in CRITICAL_CLASSES and task.namespace != SYSTEM_NAMESPACE
    ]
    return spared, Vote.PERMIT


class Conformance(Plugin):
    """Registers one rule at all three eviction points."""

    name: ClassVar[str] = "conformance"

    def open(self, view: View) -> Hooks:
        return Hooks(
            preemptable=lambda _preemptor, candidates: spare_critical(candidates),
            reclaimable=lambda _reclaimer, candidates: spare_critical(candidates),
            unified_evictable=lambda _context, candidates: spare_critical(candidates),
        )
