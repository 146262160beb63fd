"""PodGroups: gangs of vcjobs and of other workloads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from stromboli.api import core
from stromboli.dashboard.moments import created
from stromboli.dashboard.sights import Sight
from stromboli.dashboard.waiting import Why, job_of, waits, why


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A PodGroup. ``tier`` is the highest HyperNode tier it may span, empty without such a limit."""

    namespace: str
    name: str
    job: str
    queue: str
    state: str
    least: int
    running: int
    succeeded: int
    failed: int
    tier: str
    created: float
    why: Why

    @property
    def words(self) -> tuple[str, ...]:
        """What a search looks at."""
        return f"{self.namespace}/{self.name}", self.job, self.queue, self.why.reason, self.why.message


def rows(sight: Sight) -> list[GroupRow]:
    """All PodGroups: those that wait first, the longest waiting on top; the others by age, newest on top."""
    ordered = sorted(sight.groups, key=lambda group: (group.namespace, group.name))
    ordered.sort(key=lambda group: created(group) if waits(group) else -created(group))
    ordered.sort(key=lambda group: not waits(group))
    return [_row(group) for group in ordered]


def counts(sight: Sight) -> dict[str, int]:
    """PodGroups by phase."""
    found = Counter(_phase(group) for group in sight.groups)
    return dict(sorted(found.items()))


def _phase(group: core.PodGroup) -> str:
    return group.status.phase or "Pending"


def _row(group: core.PodGroup) -> GroupRow:
    status = group.status
    return GroupRow(
        group.namespace,
        group.name,
        job_of(group),
        group.spec.queue,
        _phase(group),
        group.spec.min_member,
        status.running,
        status.succeeded,
        status.failed,
        _tier(group.spec.network_topology),
        created(group),
        why(group),
    )


def _tier(topology: core.NetworkTopology | None) -> str:
    if topology is None:
        return ""
    tier = topology.highest_tier_name or topology.highest_tier_allowed
    return "" if tier in (None, "") else f"{topology.mode or 'hard'} {tier}"
