"""Whether a job is to be started now (spec 03 section 7.3, steps 4 to 8). Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import tzinfo

from stromboli.api import cron, names
from stromboli.api.batch import CronJob
from stromboli.api.core import timestamp
from stromboli.api.phases import ConcurrencyPolicy
from stromboli.controllers.cronjob import zones
from stromboli.controllers.cronjob.accounting import Note, Record
from stromboli.controllers.cronjob.timing import Due, Missed, NoTimes, Timetable, due, wait
from stromboli.controllers.cronjob.zones import UnknownZone
from stromboli.kube.events import EventType


class Unusable(Exception):
    """A CronJob whose schedule or zone cannot be used; ``note`` is what to tell its owner, if anything."""

    def __init__(self, message: str, note: Note | None = None) -> None:
        """Say what is wrong, and optionally how to tell."""
        super().__init__(message)
        self.note = note


@dataclass(frozen=True, slots=True)
class Decision:
    """Start a job for ``start``, after having ended the active ones if ``replace``; look again after ``wait``."""

    start: int | None = None
    replace: bool = False
    wait: float | None = None
    notes: tuple[Note, ...] = ()


def timetable(cron_job: CronJob, local: tzinfo) -> tuple[Timetable, tuple[Note, ...]]:
    """When the CronJob's jobs start, and what there is to say about that.

    Raises:
        Unusable: zone or schedule make no sense.
    """
    spec = cron_job.spec
    zone = local
    if spec.time_zone is not None:
        try:
            zone = zones.load(spec.time_zone)
        except UnknownZone as error:
            text = f'Invalid time zone "{spec.time_zone}": {error}'
            raise Unusable(text, Note(EventType.WARNING, "InvalidTimeZone", text)) from error
    try:
        schedule = cron.parse(spec.schedule)
        zone = zones.load(schedule.zone) if schedule.zone is not None else zone
    except (cron.BadSchedule, UnknownZone) as error:
        raise Unusable(f"unparseable schedule {spec.schedule!r}: {error}") from error
    notes = (_own_zone_note(spec.schedule),) if "TZ" in spec.schedule else ()
    return Timetable(schedule, zone), notes


def _own_zone_note(schedule: str) -> Note:
    text = (
        f'CRON_TZ or TZ in the schedule "{schedule}" is not officially supported. '
        "If set, the TimeZone field will be ignored during execution."
    )
    return Note(EventType.WARNING, "UnsupportedSchedule", text)


def decide(
    cron_job: CronJob, record: Record, table: Timetable, *, now: float, last_started: float = 0, since: float = 0
) -> Decision:
    """What to do now. ``last_started`` is the latest start that this process made, and ``since`` the moment from
    which the schedule holds, if it was changed while this process watched: 0 for none.

    Raises:
        Unusable: the schedule's times never come.
    """
    last = max(timestamp(record.last_schedule_time), last_started)
    earliest = max(last or timestamp(cron_job.metadata.creation_timestamp), since)
    found = _due(cron_job, table, earliest, now)
    notes = (_TOO_MANY,) if found.missed is Missed.MANY and found.start is not None else ()
    rest = Decision(wait=wait(table, earliest=earliest, now=now), notes=notes)
    if found.start is None or _is_done(cron_job, record, found.start, last):
        return rest
    policy = cron_job.spec.concurrency_policy
    if record.active and policy == ConcurrencyPolicy.FORBID:
        return replace(rest, notes=(*notes, _FORBIDDEN))
    if record.active and policy == ConcurrencyPolicy.REPLACE:
        return replace(rest, start=found.start, replace=True, notes=(*notes, _REPLACING))
    return replace(rest, start=found.start)


def _due(cron_job: CronJob, table: Timetable, earliest: float, now: float) -> Due:
    try:
        return due(table, earliest=earliest, now=now, deadline=cron_job.spec.starting_deadline_seconds)
    except NoTimes as error:
        text = f"Error getting schedule time: {error}"
        raise Unusable(text, Note(EventType.WARNING, "InvalidSchedule", text)) from error


def _is_done(cron_job: CronJob, record: Record, start: int, last: float) -> bool:
    name = names.cron_job_child_name(cron_job.name, start)
    return start == last or any(one.name == name for one in record.active)


_TOO_MANY = Note(
    EventType.WARNING,
    "TooManyMissedTimes",
    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
)
_FORBIDDEN = Note(EventType.WARNING, "ForbidConcurrent", "Skipping job creation because another job is already running")
_REPLACING = Note(EventType.WARNING, "ReplaceConcurrent", "Replacing active job for CronJob")
