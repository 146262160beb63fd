"""Which roles of a job belong together and which do not, from the PodGroup's annotations (spec 06 section 24)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from stromboli.api import names

Groups = list[list[str]]

SELF_AWAY, NEAR_OTHERS, NEAR_SELF, AWAY_FROM_OTHERS = 4, 3, 2, 1
"""Priorities of roles: those with the strongest wish are placed first."""


class BadTopology(ValueError):
    """An annotation that makes no sense for the job; the text names role and job."""


def parse_groups(text: str) -> Groups:
    """Groups separated by ``;``, names by ``,``; empty names are kept."""
    return [[name.strip() for name in group.split(",")] for group in text.split(";")] if text else []


@dataclass(frozen=True, slots=True)
class TaskTopology:
    """What a job asks for."""

    near: Groups = field(default_factory=list)
    away: Groups = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, annotations: Mapping[str, str], job: str, roles: Collection[str]) -> TaskTopology | None:
        """The topology of a job (``namespace/name``) with these roles; None when it asks for nothing. Raises
        BadTopology."""
        near = annotations.get(names.TASK_TOPOLOGY_AFFINITY)
        away = annotations.get(names.TASK_TOPOLOGY_ANTI_AFFINITY)
        order = annotations.get(names.TASK_TOPOLOGY_TASK_ORDER)
        if near is None and away is None and order is None:
            return None
        listed = parse_groups(order or "")
        topology = cls(parse_groups(near or ""), parse_groups(away or ""), listed[0] if listed else [])
        for groups in (topology.near, topology.away, [topology.order]):
            _check(groups, job, roles)
        return topology

    def rank(self, role: str) -> int:
        """How early the role is in the order; 0 when it is not in it."""
        return len(self.order) - self.order.index(role) if role in self.order else 0

    def priority(self, role: str) -> int:
        """The role's strongest wish; 0 when it has none."""
        wishes = (
            (SELF_AWAY, [role] in self.away),
            (NEAR_OTHERS, _has_company(role, self.near)),
            (NEAR_SELF, [role] in self.near),
            (AWAY_FROM_OTHERS, _has_company(role, self.away)),
        )
        return next((priority for priority, wished in wishes if role and wished), 0)

    def attraction(self, role: str, count_of: Mapping[str, int]) -> int:
        """Tasks among the counted that the role wants near."""
        return sum(count_of.get(other, 0) for other in _related(role, self.near))

    def repulsion(self, role: str, count_of: Mapping[str, int]) -> int:
        """Tasks among the counted that the role wants away."""
        return sum(count_of.get(other, 0) for other in _related(role, self.away))


def _has_company(role: str, groups: Groups) -> bool:
    return any(len(group) > 1 and role in group for group in groups)


def _related(role: str, groups: Groups) -> Iterator[str]:
    """The role itself for a group of its own, the others of the groups it shares; each once."""
    found: set[str] = set()
    for group in groups:
        if role in group:
            found.update(group if len(group) == 1 else (other for other in group if other != role))
    yield from found


def _check(groups: Groups, job: str, roles: Collection[str]) -> None:
    for group in groups:
        seen: set[str] = set()
        for role in filter(None, group):
            if role not in roles:
                raise BadTopology(f"task {role} do not exist in job <{job}>")
            if role in seen:
                raise BadTopology(f"task {role} is duplicate in job <{job}>")
            seen.add(role)
