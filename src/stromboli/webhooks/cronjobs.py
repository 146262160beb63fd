"""CronJobs: schedule, time zone and a name that leaves room for the jobs' suffix (spec 07 section 18)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from stromboli.api import cron
from stromboli.webhooks.context import Context
from stromboli.webhooks.errors import FieldError, Reason, sentence
from stromboli.webhooks.naming import qualified_name_faults
from stromboli.webhooks.shapes import CronJob, JsonObject, read

LONGEST_NAME: Final = 52
LONGEST_ZONE: Final = 255
"""Zones are files; there is none of a longer name."""
_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def validate(obj: JsonObject | None, old: JsonObject | None, context: Context) -> list[FieldError]:
    """All faults, on creation and on change alike. The job template is judged when its jobs are created."""
    cron_job = read(CronJob, obj)
    return [
        *_schedule_faults(cron_job.spec.schedule),
        *_zone_faults(cron_job.spec.time_zone),
        *_name_faults(cron_job.metadata.name),
    ]


def _schedule_faults(schedule: str) -> Iterator[FieldError]:
    field = "spec.schedule"
    if not schedule:
        yield sentence(field, " schedule is required, but got empty", Reason.REQUIRED)
    elif "TZ" in schedule:
        yield sentence(field, " schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field")
    elif not cron.is_schedule(schedule):
        yield sentence(field, "schedule is not a valid cron expression")


def _zone_faults(zone: str | None) -> Iterator[FieldError]:
    field = "spec.timeZone"
    if zone is None:
        return
    if not zone:
        yield sentence(field, " timeZone must be nil or non-empty string, got empty string")
        return
    for part in zone[:LONGEST_ZONE].split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            yield sentence(field, " unknown timeZone")
    if zone.lower() == "local":
        yield sentence(field, " timeZone can't be Local, and must be defined in https://www.iana.org/time-zones")
    elif ".." in zone.split("/") or len(zone) > LONGEST_ZONE or not _is_zone(posixpath.normpath(zone)):
        # Zones are files to the original, and ``Asia/./Tokyo`` or ``Asia//Tokyo`` are the same file as ``Asia/Tokyo``.
        yield sentence(field, " invalid timeZone", Reason.NOT_FOUND)


@lru_cache(maxsize=1024)
def _is_zone(zone: str) -> bool:
    try:
        # no_cache: the class keeps every zone it ever made alive, and names come from tenants.
        ZoneInfo.no_cache(zone)
    except (ValueError, LookupError, OSError):
        return False
    return True


def _name_faults(name: str) -> Iterator[FieldError]:
    field = "metadata.name"
    if len(name) > LONGEST_NAME:
        limit = f"no more than {LONGEST_NAME} characters to accommodate job name suffix (max 63 total)"
        yield sentence(field, f"cronJob name must be {limit}")
    elif faults := qualified_name_faults(name):
        yield sentence(field, f'invalid cronJob name "{name}": {"; ".join(faults)}')
