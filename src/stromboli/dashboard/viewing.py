"""The view: what the page shows of one sight, section by section, as plain data. Pure.

Sections are ``overview``, ``queues``, ``jobs``, ``podgroups``, ``topology`` and ``events``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stromboli.dashboard import amounts, events, groups, jobs, queues, topology
from stromboli.dashboard.events import EventRow
from stromboli.dashboard.groups import GroupRow
from stromboli.dashboard.jobs import JobRow
from stromboli.dashboard.objects import PodSight, is_ready
from stromboli.dashboard.queues import QueueRow
from stromboli.dashboard.sights import Sight
from stromboli.dashboard.starts import Pace

FEW = 8
"""Rows of the short lists on the first page."""


@dataclass(frozen=True, slots=True)
class Room:
    """A resource of the cluster: what pods ask for, and what there is."""

    resource: str
    used: str
    of: str
    part: float


@dataclass(frozen=True, slots=True)
class Overview:
    """The first page. ``pods`` counts pods with a node and without, of those that have not ended."""

    nodes: int
    ready: int
    placed: int
    unplaced: int
    queues: int
    jobs: dict[str, int]
    groups: dict[str, int]
    waiting: int
    rooms: tuple[Room, ...]
    longest: tuple[JobRow, ...]
    latest: tuple[EventRow, ...]


def overview(sight: Sight, found: Sequence[JobRow], said: Sequence[EventRow]) -> Overview:
    """The first page, from the sight and from rows that were made of it."""
    living = [pod for pod in sight.pods if not pod.ended]
    placed = [pod for pod in living if pod.node]
    waiting = jobs.waiting(found)
    return Overview(
        len(sight.nodes),
        sum(map(is_ready, sight.nodes)),
        len(placed),
        len(living) - len(placed),
        len(sight.queues),
        jobs.counts(sight.jobs),
        groups.counts(sight),
        len(waiting),
        tuple(rooms(sight, placed)),
        tuple(waiting[:FEW]),
        tuple(said[:FEW]),
    )


def rooms(sight: Sight, placed: Sequence[PodSight]) -> list[Room]:
    """The cluster's resources, those that queues are measured in."""
    total = amounts.total(node.status.allocatable for node in sight.nodes)
    used: dict[str, float] = {}
    for pod in placed:
        for resource, amount in pod.requests.items():
            used[resource] = used.get(resource, 0.0) + amount
    return [
        Room(
            resource,
            amounts.text(used.get(resource, 0.0), resource),
            amounts.text(total.get(resource), resource),
            amounts.part(used.get(resource, 0.0), float(total.get(resource, 0))),
        )
        for resource in amounts.ordered(set(used) | {name for name in total if not amounts.is_minor(name)})
    ]


@dataclass(frozen=True, slots=True)
class View:
    """Everything that is made from one sight."""

    overview: Overview
    pace: Pace
    queues: Sequence[QueueRow]
    jobs: Sequence[JobRow]
    groups: Sequence[GroupRow]
    topology: topology.TopologyMap
    events: Sequence[EventRow]


def view(sight: Sight, pace: Pace) -> View:
    """The whole view."""
    found, said = jobs.rows(sight), events.rows(sight)
    return View(
        overview(sight, found, said),
        pace,
        queues.rows(sight),
        found,
        groups.rows(sight),
        topology.mapped(sight),
        said,
    )
