"""tdm: nodes of a revocable zone run preemptable work, and only in the zone's daily window (spec 06 section 19)."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import model_validator

from stromboli.api import durations, names
from stromboli.scheduler.core import policy
from stromboli.scheduler.core.plugin import (
    Depends,
    Filter,
    Hooks,
    Key,
    Order,
    Plugin,
    Reach,
    Refusals,
    Scope,
    Score,
    Victims,
    Vote,
)
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.plugins import arguments, node_facts

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Job, Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View

ZONE_PREFIX = "tdm.revocable-zone."
PERIOD = "tdm.evict.period"
DEFAULT_PERIOD = 60.0
NOT_REVOCABLE = Reason("not allow to dispatch to revocable node", Code.UNRESOLVABLE)
SCORE = 100.0
ZONES_PER_FILTER = 254
"""Refusals are bytes: 0 is none, and one is for nodes of open zones."""
_LAST_PASS = "tdm.last-eviction-pass"
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})")


class BadWindow(ValueError):
    """A window that cannot be read; the text says how one is written."""


@dataclass(frozen=True, slots=True)
class Window:
    """Part of every day, in minutes after midnight, local time; it may last until the next day."""

    start: int
    end: int

    @classmethod
    def parse(cls, text: str) -> Window:
        """Reads ``HH:MM-HH:MM``. Raises BadWindow."""
        parts = text.strip().split("-")
        if len(parts) != 2:
            raise BadWindow(f"revocable zone {text} format error: write HH:MM-HH:MM")
        start, end = (_minutes(part.strip(), text) for part in parts)
        return cls(start, end)

    @property
    def seconds(self) -> int:
        """How long it lasts."""
        end = self.end if self.start < self.end else self.end + 24 * 60
        return (end - self.start) * 60

    def is_open(self, now: datetime) -> bool:
        """Whether the window is open at a local time, be it yesterday's that lasts until today."""
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        whole = now.replace(microsecond=0)
        starts = (midnight + timedelta(minutes=self.start, days=days) for days in (0, -1))
        return any(start <= whole <= start + timedelta(seconds=self.seconds) for start in starts)


def _minutes(part: str, text: str) -> int:
    match = _TIME.fullmatch(part)
    if match is None or int(match[1]) > 23 or int(match[2]) > 59:
        raise BadWindow(f"revocable zone {text} format error: {part!r} is not a time of day like 6:30")
    return int(match[1]) * 60 + int(match[2])


@dataclass(frozen=True, slots=True)
class Zone:
    """A configured zone in this cycle."""

    name: str
    written: str
    window: Window | None
    is_open: bool
    fault: str = ""

    @property
    def refusal(self) -> str:
        """Why the zone's nodes take nothing now; empty when they do."""
        if self.fault:
            return self.fault
        return "" if self.is_open else f"current time beyond revocable zone {self.name}:{self.written}"


class TdmArguments(arguments.model("TdmBase", **{PERIOD: arguments.Duration})):  # type: ignore[misc]
    """Besides the period, any number of keys that define zones."""

    @model_validator(mode="before")
    @classmethod
    def _windows(cls, given: object) -> object:
        for key, written in given.items() if isinstance(given, Mapping) else ():
            if ZONE_PREFIX in str(key):
                if not isinstance(written, str):
                    raise ValueError(f"{key}: expected HH:MM-HH:MM, quoted")
                Window.parse(written)
        return given


class TimeDivision(Plugin):
    """Filters and scores nodes by zone, and evicts preemptable work when a zone's window closes."""

    name: ClassVar[str] = "tdm"
    arguments_model = TdmArguments

    def open(self, view: View) -> Hooks:
        self._view = view
        self._zones = {zone.name: zone for zone in _zones(self.arguments, view.now)}
        self._codes, self._by_name = node_facts.of(view).labels.column(names.REVOCABLE_ZONE)
        self._refusals = [self._refusal(name) for name in self._by_name]
        return Hooks(
            filters=[self._filter(first) for first in range(0, len(self._refusals), ZONES_PER_FILTER)],
            scores=[Score("tdm", self._rate, scope=Scope.TASK, reach=Reach.NODE)],
            job_order=Order(key=_first_the_steady, depends=Depends.NOTHING),
            job_pipelined=lambda job: Vote.PERMIT if job.is_pipelined else Vote.REJECT,
            job_starving=lambda job: not job.preemptable and job.counts[TaskStatus.PENDING] > 0,
            preemptable=self._preemptable,
            victim_tasks=[self._victims] if self._is_due() else [],
        )

    def _refusal(self, zone: str) -> str:
        known = self._zones.get(zone)
        return known.refusal if known is not None else f"revocable zone {zone} not support"

    # Nodes

    def _filter(self, first: int) -> Filter:
        """About the nodes of as many zones as have room, each with its own reason, in the byte of a refusal."""
        refusals = self._refusals[first : first + ZONES_PER_FILTER]
        reasons = [NOT_REVOCABLE, *(Reason(refusal, Code.UNRESOLVABLE) for refusal in refusals)]

        def refuse(task: Task, rows: Rows) -> Refusals:
            open_zone = 0 if task.revocable_zone else 1
            by_zone = np.zeros(len(self._refusals) + 1, dtype=np.uint8)  # the last is for nodes without a zone
            by_zone[first : first + len(refusals)] = [
                at if refusal else open_zone for at, refusal in enumerate(refusals, start=2)
            ]
            return by_zone[self._codes[rows]]

        return Filter("revocable zone", reasons, refuse, scope=Scope.TASK, reach=Reach.NODE)

    def _rate(self, task: Task, rows: Rows) -> Floats | None:
        if not task.revocable_zone or not self._by_name:
            return None
        by_zone = [0.0 if refusal else SCORE for refusal in self._refusals]
        return np.array([*by_zone, 0.0])[self._codes[rows]]

    # Victims

    def _preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> Victims:
        """Steady work takes from preemptable work on nodes outside the zones."""
        if preemptor.preemptable or preemptor.revocable_zone:
            return [], Vote.REJECT
        outside = [
            task for task in candidates if task.preemptable and task.status == TaskStatus.RUNNING and _zone(task) == ""
        ]
        return _within_budgets(outside), Vote.PERMIT

    def _victims(self, _candidates: Sequence[Task]) -> Collection[Task]:
        """Preemptable work in zones whose window is closed, the least important first, whatever is offered."""
        self._view.memory[_LAST_PASS] = self._view.now
        closed = {zone.name for zone in self._zones.values() if zone.refusal}
        found = [
            task
            for node in self._view.node_list
            if node is not None and node.labels.get(names.REVOCABLE_ZONE) in closed
            for task in node.tasks.values()
            if task.preemptable and task.status == TaskStatus.RUNNING
        ]
        return _within_budgets(sorted(found, key=lambda task: (task.priority, task.key)))

    def _is_due(self) -> bool:
        period = _seconds(policy.text(self.arguments, PERIOD, ""), DEFAULT_PERIOD)
        last = self._view.memory.get(_LAST_PASS)
        return not isinstance(last, float) or self._view.now - last >= period


def _first_the_steady(job: Job) -> Key:
    return (job.preemptable,)


def _zones(given: policy.Arguments, now: float) -> list[Zone]:
    local = datetime.fromtimestamp(now, UTC).astimezone().replace(tzinfo=None)
    zones = []
    for key in given:
        if ZONE_PREFIX in key:
            name, written = key.replace(ZONE_PREFIX, ""), policy.text(given, key, "")
            try:
                window = Window.parse(written)
            except BadWindow as error:
                zones.append(Zone(name, written, None, False, str(error)))
            else:
                zones.append(Zone(name, written, window, window.is_open(local)))
    return zones


def _zone(task: Task) -> str:
    return task.node.labels.get(names.REVOCABLE_ZONE, "") if task.node is not None else ""


def _within_budgets(tasks: Sequence[Task]) -> list[Task]:
    """The first tasks of each job, as many as its disruption budget lets go."""
    left: dict[str, int] = {}
    chosen: list[Task] = []
    for task in tasks:
        job = task.job
        if job is None:
            continue
        count = left[job.id] if job.id in left else disruptions(job)
        left[job.id] = count - 1
        if count > 0:
            chosen.append(task)
    return chosen


def disruptions(job: Job) -> int:
    """How many Running tasks the job's disruption budget lets go; 1 without a budget."""
    if job.disruption_budget is None:
        return 1
    kind, written = job.disruption_budget
    amount = _part(written, len(job.tasks))
    running = job.counts[TaskStatus.RUNNING]
    if amount is None:
        return 1
    if kind == "min-available":
        return max(0, running - amount)
    over = job.counts[TaskStatus.SUCCEEDED] + job.counts[TaskStatus.FAILED]
    return max(0, amount - (len(job.tasks) - over - running))


def _part(written: str, whole: int) -> int | None:
    """A number, or a percentage of ``whole`` rounded up."""
    try:
        if written.endswith("%"):
            return math.ceil(int(written[:-1]) * whole / 100)
        return int(written)
    except ValueError:
        return None


def _seconds(text: str, default: float) -> float:
    try:
        return durations.seconds(text)
    except ValueError:
        return default
