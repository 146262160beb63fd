from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.cron import is_schedule
from stromboli.webhooks.shapes import JsonObject
from tests.webhooks.building import decide

PATH = "/cronjobs/validate"


def cron_job(schedule: str = "* * * * *", name: str = "nightly", **spec: Any) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "team"}, "spec": {"schedule": schedule, **spec}}


GOOD = [
    "* * * * *", "*/15 0-5,22 1 JAN,feb ?", "0 0 * * mon-fri/2", "5/100 * * * *", "1,,3 * * * *", ", * * * *",
    "*-5 * * * *", "  0  0  31 2 * ", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly",
    "@every 1h30m", "@every 100ms", "@every -5m", "+5 * * * *",
]  # fmt: skip
BAD = [
    "", " ", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7",
    "5-1 * * * *",
    "*/0 * * * *", "1/2/3 * * * *", "1-2-3 * * * *", "*-5-6 * * * *", "** * * * *", "L * * * *", "* * * * 1#2",
    "0 0 * Mon *", "-1 * * * *", "@reboot", "@Hourly", "@every", "@every 1d", "@every  1h ", "@daily ", "٣ * * * *",
]  # fmt: skip


@pytest.mark.parametrize("schedule", GOOD)
def test_a_schedule_is_accepted(schedule: str) -> None:
    assert is_schedule(schedule)
    assert decide(PATH, cron_job(schedule)).allowed


@pytest.mark.parametrize("schedule", BAD)
def test_a_schedule_is_refused(schedule: str) -> None:
    assert not is_schedule(schedule)
    assert not decide(PATH, cron_job(schedule)).allowed


@given(st.text(alphabet="*?0123456789,-/@ aemnorsuvy", max_size=24))
def test_every_text_is_judged(text: str) -> None:
    assert is_schedule(text) in (True, False)


ZONES = {
    "Asia/Tokyo": "",
    "UTC": "",
    "America/Argentina/Buenos_Aires": "",
    "Etc/GMT+5": "",
    "": "timeZone must be nil or non-empty string, got empty string",
    "local": "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones",
    "utc": "invalid timeZone",
    "Mars/Base": "invalid timeZone",
    "New York": "unknown timeZone invalid timeZone",
    "UTC!": "unknown timeZone invalid timeZone",
    "America/-NewYork": "unknown timeZone invalid timeZone",
    "Asia/./Shanghai": "unknown timeZone",
    "Asia/../UTC": "unknown timeZone invalid timeZone",
    "../../etc/passwd": "unknown timeZone unknown timeZone invalid timeZone",
    "A\u0000B": "unknown timeZone invalid timeZone",
}


@pytest.mark.parametrize("zone", ZONES)
def test_a_time_zone(zone: str) -> None:
    verdict = decide(PATH, cron_job(timeZone=zone))
    assert (verdict.allowed, verdict.message) == (not ZONES[zone], ZONES[zone])


def test_names_leave_room_for_a_suffix() -> None:
    assert decide(PATH, cron_job(name="n" * 52)).allowed
    limit = "cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total)"
    assert decide(PATH, cron_job(name="n" * 53)).message == limit
    assert decide(PATH, cron_job(name="bad_")).message.startswith('invalid cronJob name "bad_": name part must consist')


def test_all_faults_are_told_and_a_change_keeps_the_leading_blank() -> None:
    text = " schedule is required, but got empty timeZone must be nil or non-empty string, got empty string"
    assert decide(PATH, cron_job("", timeZone="")).message == text.strip()
    assert decide(PATH, cron_job("", timeZone=""), cron_job()).message == text


def test_a_zone_in_the_schedule_belongs_elsewhere() -> None:
    text = "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"
    assert decide(PATH, cron_job("CRON_TZ=UTC 0 0 * * *")).message == text
