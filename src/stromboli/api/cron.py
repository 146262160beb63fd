"""Cron schedules: the grammar and the instants that follow from it (spec 03 section 7.6). Pure.

A schedule is either a set of wall-clock minutes or a fixed distance (``@every``). The instants of the first kind are
those whole minutes at which a clock of the zone *shows* a time of the set. So an hour that daylight saving skips does
not fire, and one that it repeats fires twice, without either being a special case.

Instants are whole seconds since the epoch; references may have fractions.
"""

from __future__ import annotations

import calendar
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

from stromboli.api import durations

YEARS_SEARCHED: Final = 5
"""How far the search for the next instant goes before it gives up, as it must for 31 February."""

_EVERY: Final = "@every "
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_NUMBER: Final = re.compile(r"\+?[0-9]{1,18}")
_ZONE: Final = re.compile(r"(?:CRON_)?TZ=(\S*)\s+(.*)", re.DOTALL)
_ANY: Final = ("*", "?")
_SECOND: Final = timedelta(seconds=1)
_MINUTE: Final = 60
_HOUR: Final = 3600


class BadSchedule(ValueError):
    """A text that is no schedule; the message names the part at fault and what it may be."""


@dataclass(frozen=True, slots=True)
class _Field:
    title: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()

    def parse(self, text: str) -> tuple[frozenset[int], bool]:
        """The values of a field, and whether it restricts nothing."""
        values: set[int] = set()
        free = False
        for element in text.split(","):
            if element:
                low, high, step, starred = self._element(element)
                values.update(range(low, high + 1, step))
                free = free or (starred and step == 1)
        return frozenset(values), free

    def _element(self, text: str) -> tuple[int, int, int, bool]:
        span, slash, step_text = text.partition("/")
        step = self._step(step_text, text) if slash else 1
        low_text, dash, high_text = span.partition("-")
        if low_text in _ANY:
            if "-" in high_text:
                raise self._error(text)
            return self.lowest, self.highest, step, True
        low = self._number(low_text, text)
        high = self._number(high_text, text) if dash else self.highest if slash else low
        if not self.lowest <= low <= high <= self.highest:
            raise self._error(text)
        return low, high, step, False

    def _step(self, text: str, element: str) -> int:
        if not _NUMBER.fullmatch(text) or int(text) < 1:
            raise self._error(element)
        return int(text)

    def _number(self, text: str, element: str) -> int:
        if text.lower() in self.names:
            return self.lowest + self.names.index(text.lower())
        if not _NUMBER.fullmatch(text):
            raise self._error(element)
        return int(text)

    def _error(self, element: str) -> BadSchedule:
        named = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        allowed = f"{self.lowest} to {self.highest}{named}"
        return BadSchedule(f"{self.title} {element!r} is not within {allowed}; use - for ranges and / for steps")


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _DAYS),
)


@dataclass(frozen=True, slots=True)
class WallClock:
    """The minutes of a five-field schedule. ``either`` tells that one of the two day fields is enough."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    def next(self, after: float, zone: tzinfo) -> int | None:
        """The first instant later than ``after``; None when there is none within five years."""
        moment = _local(int(after // 1) + 1, zone)
        moment = _ceil(moment, zone)
        last_year = moment.year + YEARS_SEARCHED
        while True:
            if not self._has_day(moment.date()):
                day = self._later_day(moment.date(), last_year)
                if day is None:
                    return None
                moment = _first_of_day(day, moment, zone)
            elif moment.hour not in self.hours:
                moment = _later(moment, 60 - moment.minute, zone)
            elif moment.minute not in self.minutes:
                moment = _later(moment, self._minutes_to_go(moment.minute), zone)
            else:
                return int(moment.timestamp())

    def _has_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_date, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_date or by_weekday if self.either else by_date and by_weekday

    def _later_day(self, day: date, last_year: int) -> date | None:
        year, month, first = day.year, day.month, day.day + 1
        while year <= last_year:
            if month in self.months:
                for number in range(first, calendar.monthrange(year, month)[1] + 1):
                    if self._has_day(candidate := date(year, month, number)):
                        return candidate
            year, month, first = (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)
        return None

    def _minutes_to_go(self, minute: int) -> int:
        index = bisect_left(self.minutes, minute)
        return (self.minutes[index] if index < len(self.minutes) else 60) - minute


@dataclass(frozen=True, slots=True)
class Every:
    """A fixed distance of whole seconds, counted from the reference."""

    seconds: int

    def next(self, after: float, zone: tzinfo) -> int | None:
        """The reference, without its fraction, plus the distance; the zone does not matter."""
        return int(after // 1) + self.seconds


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule, and the zone that its own text names, if it does."""

    times: WallClock | Every
    zone: str | None = None

    def next(self, after: float, zone: tzinfo) -> int | None:
        """The first instant later than ``after`` on clocks of ``zone``; None when there is none."""
        return self.times.next(after, zone)

    def instants(self, after: float, zone: tzinfo) -> Iterator[int]:
        """All instants later than ``after``, in order."""
        found = self.next(after, zone)
        while found is not None:
            yield found
            found = self.next(found, zone)


@lru_cache(maxsize=4096)
def parse(text: str) -> Schedule:
    """Read a schedule: five fields, a descriptor or ``@every <duration>``, after ``TZ=<zone>`` or ``CRON_TZ=<zone>``.

    Raises:
        BadSchedule: one line that names the part at fault.
    """
    zone, body = _split_zone(text)
    if body.startswith(_EVERY):
        return Schedule(_every(body.removeprefix(_EVERY)), zone)
    if body.startswith("@"):
        if body not in _DESCRIPTORS:
            raise BadSchedule(f"{body!r} is unknown; there are {', '.join(sorted(_DESCRIPTORS))} and @every <duration>")
        body = _DESCRIPTORS[body]
    return Schedule(_wall_clock(body), zone)


def is_schedule(text: str) -> bool:
    """Whether ``text`` is a schedule. Dates that never come are accepted."""
    try:
        parse(text)
    except BadSchedule:
        return False
    return True


def _split_zone(text: str) -> tuple[str | None, str]:
    if not text.startswith(("TZ=", "CRON_TZ=")):
        return None, text
    match = _ZONE.fullmatch(text)
    if match is None or not match[1]:
        raise BadSchedule(f"{text!r} names a zone but no times; write for example TZ=UTC 0 20 * * *")
    return match[1], match[2].strip()


def _every(text: str) -> Every:
    try:
        distance = durations.parse(text)
    except ValueError as error:
        raise BadSchedule(f"@every: {error}") from error
    return Every(max(1, distance // durations.SECOND))


def _wall_clock(text: str) -> WallClock:
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise BadSchedule(f"{text!r} has {len(parts)} fields, not minute, hour, day of month, month and day of week")
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = (
        field.parse(part) for field, part in zip(_FIELDS, parts, strict=True)
    )
    either = not (any_day or any_weekday)
    return WallClock(tuple(sorted(minutes)), tuple(sorted(hours)), days, months, weekdays, either)


# -- moving on the time line; a step that would cross a change of the clocks is cut to a minute ------------------------


def _local(instant: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(instant, zone)


def _ceil(moment: datetime, zone: tzinfo) -> datetime:
    return _local(int(moment.timestamp()) + _MINUTE - moment.second, zone) if moment.second else moment


def _later(moment: datetime, minutes: int, zone: tzinfo) -> datetime:
    start = int(moment.timestamp())
    target = _local(start + minutes * _MINUTE, zone)
    if target.utcoffset() == moment.utcoffset():
        return target
    return _ceil(_local(start + _MINUTE, zone), zone)


def _first_of_day(day: date, moment: datetime, zone: tzinfo) -> datetime:
    """The first instant of a later day; midnight itself may be skipped, or come twice."""
    first = datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC).astimezone(zone)
    return _ceil(max(first, moment + _SECOND), zone)
