"""nodegroup (spec 06 section 22)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stromboli.api import core
from tests.scheduler.plugins.references.telling import Told

LABEL = "volcano.sh/nodegroup-name"


@dataclass(frozen=True)
class NodeGroups:
    """The plugin's arguments."""

    strict: bool = True
    ordered: bool = False
    hierarchy: bool = False

    def affinity_of(self, told: Told, queue: core.Queue) -> core.QueueAffinity | None:
        """The queue's own, else with hierarchy that of the nearest ancestor that has one."""
        seen = []
        while self.hierarchy and queue.spec.affinity is None:
            seen.append(queue.name)
            parent = queue.spec.parent or "root"
            if parent in seen or parent not in told.queues:
                return None
            queue = told.queues[parent]
        return queue.spec.affinity

    def refusals(self, told: Told, pod: core.Pod, node: core.Node) -> list[str]:
        """The table of the section."""
        near, liked, away, disliked = lists(self.affinity_of(told, told.queue_of(pod)))
        ruled = bool(near or liked or away or disliked)
        group = node.metadata.labels.get(LABEL)
        if group is None:
            return ["node group label not found"] if ruled or self.strict else []
        if not ruled:
            return ["node group affinity not specified"]
        allowed = group in near or group in liked
        if group in away:
            allowed = False
        if group in disliked:
            allowed = True
        return [] if allowed else ["node does not satisfy the node group affinity"]

    def scores(self, told: Told, pod: core.Pod, nodes: Sequence[core.Node]) -> dict[str, float]:
        """One node after the other."""
        return {node.name: self._score(told, pod, node) for node in nodes}

    def _score(self, told: Told, pod: core.Pod, node: core.Node) -> float:
        near, liked, _, disliked = lists(self.affinity_of(told, told.queue_of(pod)))
        group = node.metadata.labels.get(LABEL)
        if group is None:
            return 0.0
        if group in disliked:
            return -1.0
        score = 100.0 if group in near else 0.0
        if group in liked:
            place = liked.index(group)
            score += 50.0 * (len(liked) - place) / len(liked) if self.ordered else 50.0
        return score


def lists(affinity: core.QueueAffinity | None) -> tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]:
    """Required and preferred groups, then those of the anti-affinity."""
    near = affinity.node_group_affinity if affinity else None
    away = affinity.node_group_anti_affinity if affinity else None
    return (
        near.required_during_scheduling_ignored_during_execution if near else (),
        near.preferred_during_scheduling_ignored_during_execution if near else (),
        away.required_during_scheduling_ignored_during_execution if away else (),
        away.preferred_during_scheduling_ignored_during_execution if away else (),
    )
