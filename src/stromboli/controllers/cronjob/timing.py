"""Which start of a schedule is due, and when to look again (spec 03 section 7.5). Pure.

Of several missed starts only the latest is ever run. Times are seconds since the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from enum import Enum
from typing import Final

from stromboli.api.cron import Schedule

LATE: Final = 0.1
"""Seconds to look after a start is due, so that it certainly is."""
MANY: Final = 100


class NoTimes(ValueError):
    """A schedule whose times never come, or come without end within a second."""


class Missed(Enum):
    """How many starts have passed unused."""

    NONE = "none"
    FEW = "few"
    MANY = "many"


@dataclass(frozen=True, slots=True)
class Due:
    """The start to run now, None if there is none, and how many were missed."""

    start: int | None
    missed: Missed = Missed.NONE


@dataclass(frozen=True, slots=True)
class Timetable:
    """A schedule on the clocks of a zone."""

    schedule: Schedule
    zone: tzinfo

    def next(self, after: float) -> int | None:
        """The first start later than ``after``."""
        return self.schedule.next(after, self.zone)


def due(table: Timetable, *, earliest: float, now: float, deadline: int | None = None) -> Due:
    """The latest start in ``(earliest, now]``; with ``deadline`` (seconds) only one that is not later than that.

    Raises:
        NoTimes: the schedule has no two starts a second apart.
    """
    since = earliest if deadline is None else max(earliest, now - deadline)
    first = table.next(since)
    if first is not None and now < first:
        return Due(None)
    second = None if first is None else table.next(first)
    if first is not None and second is not None and now < second:
        return Due(first)
    if first is None or second is None or second - first < 1:
        raise NoTimes("time difference between two schedules is less than 1 second")
    return _latest(table, first, second - first, now)


def _latest(table: Timetable, first: int, distance: int, now: float) -> Due:
    """The latest of several starts, found from an estimate of their number instead of by walking through all."""
    count = int(now - first) // distance + 1
    latest = None
    candidate = table.next(first + (count - 2) * distance)
    while candidate is not None and candidate <= now:
        latest, candidate = candidate, table.next(candidate)
    return Due(latest, Missed.MANY if count > MANY else Missed.FEW)


def wait(table: Timetable, *, earliest: float, now: float) -> float | None:
    """Seconds until it is worth looking again; None when no start will come."""
    try:
        found = due(table, earliest=earliest, now=now)
    except NoTimes:
        base = now
    else:
        base = found.start if found.start is not None else earliest if found.missed is Missed.NONE else now
    following = table.next(base)
    return None if following is None else following + LATE - now
