"""Sections of the view, made when somebody asks for them and something has changed since.

A section is made anew at most so often that making it takes a fifth of the time; who asks in between gets the one of
before. So a cluster of tens of thousands of pods in which everything moves costs no more than a fifth of a processor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from stromboli.dashboard import events, groups, jobs, queues, topology, viewing
from stromboli.dashboard.events import EventRow
from stromboli.dashboard.following import Follower
from stromboli.dashboard.groups import GroupRow
from stromboli.dashboard.jobs import JobRow
from stromboli.dashboard.queues import QueueRow
from stromboli.dashboard.sights import Sight
from stromboli.dashboard.starts import Pace
from stromboli.dashboard.viewing import Overview
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock

REST: Final = 4.0
"""How much longer a section is kept, at least, than it took to make."""


class Sections:
    """The sections of one follower's view."""

    def __init__(
        self, follower: Follower, *, clock: Clock = SYSTEM_CLOCK, took: Callable[[str, float], None] | None = None
    ) -> None:
        self._follower = follower
        self._clock = clock
        self._took = took
        self._made: dict[str, tuple[int, float, Any]] = {}

    def overview(self) -> Overview:
        """The first page."""
        made: Overview = self._section("overview", lambda sight: viewing.overview(sight, self.jobs(), self.events()))
        return made

    def pace(self) -> Pace:
        """How fast pods get their nodes. Not kept: it changes by itself."""
        return self._follower.starts.pace(self._clock.time())

    def queues(self) -> Sequence[QueueRow]:
        """The tree of queues."""
        made: Sequence[QueueRow] = self._section("queues", queues.rows)
        return made

    def jobs(self) -> Sequence[JobRow]:
        """All jobs."""
        made: Sequence[JobRow] = self._section("jobs", jobs.rows)
        return made

    def groups(self) -> Sequence[GroupRow]:
        """All PodGroups."""
        made: Sequence[GroupRow] = self._section("podgroups", groups.rows)
        return made

    def topology(self) -> topology.TopologyMap:
        """The map."""
        made: topology.TopologyMap = self._section("topology", topology.mapped)
        return made

    def events(self) -> Sequence[EventRow]:
        """The latest events."""
        made: Sequence[EventRow] = self._section("events", events.rows)
        return made

    def _section(self, name: str, make: Callable[[Sight], Any]) -> Any:
        revision, started = self._follower.revision, self._clock.monotonic()
        known = self._made.get(name)
        if known is not None and (known[0] == revision or started < known[1]):
            return known[2]
        section = make(self._follower.sight())
        ended = self._clock.monotonic()
        if self._took is not None:
            self._took(name, ended - started)
        self._made[name] = (revision, ended + REST * (ended - started), section)
        return section
