"""Spreading of pods that do not say how they want to be spread (spec 06 section 15.2).

Pods that a service or a workload selects are spread over hosts and zones; all others are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stromboli.api import core, selectors

if TYPE_CHECKING:
    from stromboli.scheduler.core.objects import ClusterObjects
    from stromboli.scheduler.core.records import Shape
    from stromboli.scheduler.core.view import View

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
MAX_SKEWS = ((HOSTNAME, 3), (ZONE, 5))
KINDS: tuple[type[core.Object], ...] = (
    core.Service,
    core.ReplicationController,
    core.ReplicaSet,
    core.StatefulSet,
)
_NAME = "default-spreading"


class Selectors:
    """What selects pods, by namespace; kept from cycle to cycle until one of the objects changes."""

    def __init__(self, objects: ClusterObjects) -> None:
        self._by_namespace: dict[str, list[core.LabelSelector]] = {}
        for kind in KINDS:
            for (namespace, _), obj in objects.all(kind).items():
                for selector in _selectors(obj):
                    self._by_namespace.setdefault(namespace, []).append(selector)

    def constraints(self, shape: Shape) -> list[core.TopologySpreadConstraint]:
        """Constraints that should hold for pods of a shape: those of everything that selects them, taken together."""
        mine = [
            selector
            for selector in self._by_namespace.get(shape.namespace, ())
            if selectors.matches_selector(selector, shape.labels, absent=False)
        ]
        if not mine:
            return []
        together = core.LabelSelector(
            match_labels={key: value for selector in mine for key, value in selector.match_labels.items()},
            match_expressions=tuple(requirement for selector in mine for requirement in selector.match_expressions),
        )
        return [
            core.TopologySpreadConstraint(
                max_skew=skew, topology_key=key, when_unsatisfiable="ScheduleAnyway", label_selector=together
            )
            for key, skew in MAX_SKEWS
        ]


def of(view: View) -> Selectors:
    """The selectors as this cycle sees them."""
    versions = tuple(view.objects.version(kind) for kind in KINDS)
    known = view.memory.get(_NAME)
    if isinstance(known, tuple) and known[0] == versions:
        found: Selectors = known[1]
        return found
    made = Selectors(view.objects)
    view.memory[_NAME] = (versions, made)
    return made


def _selectors(obj: core.Object) -> Iterator[core.LabelSelector]:
    """What an object selects pods by; an empty selector selects nothing."""
    if isinstance(obj, core.Service | core.ReplicationController):
        if obj.spec.selector:
            yield core.LabelSelector(match_labels=obj.spec.selector)
    elif isinstance(obj, core.ReplicaSet | core.StatefulSet):
        selector = obj.spec.selector
        if selector is not None and (selector.match_labels or selector.match_expressions):
            yield selector
