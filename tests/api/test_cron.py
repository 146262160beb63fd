"""Cron schedules: the grammar and the instants, with clocks that change (spec 03 section 7.6)."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import cron

ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu")


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def shown(schedule: str, after: str, zone: str = "UTC", count: int = 3) -> list[str]:
    place = ZoneInfo(zone)
    found = cron.parse(schedule).instants(seconds(after), place)
    return [datetime.fromtimestamp(one, place).isoformat() for one in itertools.islice(found, count)]


GOOD = {
    "every minute": "* * * * *",
    "question marks": "? ? ? ? ?",
    "lists, ranges and steps": "0,30 6-16/4 1/10 jan-JUN Mon-fri",
    "from a number to the end": "5/15 * * * *",
    "an empty list item": "1,,2 * * * *",
    "every": "@every 1h30m",
    "every, below a second": "@every 1ms",
    "descriptor": "@midnight",
    "a date that never comes": "59 23 31 2 *",
    "zone": "TZ=Asia/Tokyo 0 4 * * *",
    "zone of a descriptor": "CRON_TZ=UTC @daily",
}
BAD = {
    "nothing": ("", "0 fields"),
    "six fields": ("0 0 * * * *", "6 fields"),
    "seven is not Sunday": ("0 0 * * 7", "day of week '7'"),
    "minute 60": ("60 * * * *", "minute '60'"),
    "month 0": ("0 0 1 0 *", "month '0'"),
    "a range turned round": ("30-10 * * * *", "minute '30-10'"),
    "step 0": ("*/0 * * * *", "minute '*/0'"),
    "negative": ("-5 * * * *", "minute '-5'"),
    "a name of another field": ("0 0 * mon *", "month 'mon'"),
    "unknown descriptor": ("@noon", "'@noon' is unknown"),
    "every what": ("@every soon", "'soon' is not a duration"),
    "zone without times": ("TZ=UTC", "names a zone but no times"),
    "no zone": ("TZ= 0 0 * * *", "names a zone but no times"),
    "words": ("wrong format schedule", "3 fields"),
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_a_schedule(text: str) -> None:
    assert cron.is_schedule(text)


@pytest.mark.parametrize(("text", "named"), BAD.values(), ids=BAD.keys())
def test_no_schedule_and_why(text: str, named: str) -> None:
    assert not cron.is_schedule(text)
    with pytest.raises(cron.BadSchedule) as caught:
        cron.parse(text)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_zone_without_a_blank_behind_it_is_an_error_and_no_crash() -> None:
    """Defect 17 of spec 03 section 13."""
    with pytest.raises(cron.BadSchedule, match="write for example TZ=UTC 0 20"):
        cron.parse("TZ=Europe/Berlin")


def test_the_zone_of_the_text() -> None:
    assert cron.parse("CRON_TZ=Asia/Tokyo 0 4 * * *").zone == "Asia/Tokyo"
    assert cron.parse("0 4 * * *").zone is None


def test_an_hour_that_is_skipped_does_not_fire() -> None:
    assert shown("30 2 * * *", "2026-03-27T12:00:00+00:00", "Europe/Berlin", 2) == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-30T02:30:00+02:00",
    ]


def test_an_hour_that_comes_twice_fires_twice() -> None:
    assert shown("30 2 * * *", "2026-10-24T12:00:00+00:00", "Europe/Berlin") == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:30:00+01:00",
        "2026-10-26T02:30:00+01:00",
    ]


def test_a_midnight_that_is_skipped() -> None:
    assert shown("0 0 * * *", "2018-11-02T12:00:00+00:00", "America/Sao_Paulo", 2) == [
        "2018-11-03T00:00:00-03:00",
        "2018-11-05T00:00:00-02:00",
    ]


def test_half_an_hour_that_comes_twice() -> None:
    assert shown("*/30 * * * *", "2026-04-04T14:00:00+00:00", "Australia/Lord_Howe") == [
        "2026-04-05T01:30:00+11:00",
        "2026-04-05T01:30:00+10:30",
        "2026-04-05T02:00:00+10:30",
    ]


def test_a_day_that_is_skipped() -> None:
    assert shown("0 0 30 * *", "2011-11-20T12:00:00+00:00", "Pacific/Apia", 2) == [
        "2011-11-30T00:00:00-10:00",
        "2012-01-30T00:00:00+14:00",
    ]


def test_leap_days() -> None:
    assert shown("0 0 29 2 *", "2025-03-01T00:00:00+00:00") == [
        "2028-02-29T00:00:00+00:00",
        "2032-02-29T00:00:00+00:00",
        "2036-02-29T00:00:00+00:00",
    ]
    assert cron.parse("0 0 29 2 *").next(seconds("2096-03-01T00:00:00+00:00"), UTC) is None, "2100 is no leap year"


def test_dates_that_never_come() -> None:
    assert cron.parse("59 23 31 2 *").next(0, UTC) is None


def test_either_day_field_is_enough_when_both_restrict() -> None:
    assert shown("0 0 13 * 5", "2025-03-11T00:00:00+00:00") == [
        "2025-03-13T00:00:00+00:00",
        "2025-03-14T00:00:00+00:00",
        "2025-03-21T00:00:00+00:00",
    ]
    assert shown("0 0 */1 * 5", "2025-03-11T00:00:00+00:00", count=1) == ["2025-03-14T00:00:00+00:00"]
    assert shown("0 0 */9 * 5", "2025-03-11T00:00:00+00:00", count=2) == [
        "2025-03-14T00:00:00+00:00",
        "2025-03-19T00:00:00+00:00",
    ]


def test_every_counts_from_the_reference() -> None:
    schedule = cron.parse("@every 90s500ms")
    assert schedule.next(100.7, UTC) == 190
    assert cron.parse("@every 10ms").next(5, UTC) == 6


FIELD_VALUES = [st.integers(0, 59), st.integers(0, 23), st.integers(1, 31), st.integers(1, 12), st.integers(0, 6)]
SCHEDULES = st.tuples(*(st.one_of(st.just("*"), values.map(str), values.map("{}/2".format)) for values in FIELD_VALUES))


@given(SCHEDULES, st.integers(0, 2_000_000_000), st.sampled_from(ZONES))
def test_the_next_instant_matches_and_none_before_it_does(fields: tuple[str, ...], after: int, zone: str) -> None:
    place, schedule = ZoneInfo(zone), cron.parse(" ".join(fields))
    found = schedule.next(after, place)
    if found is None:
        return
    assert found > after
    moment = datetime.fromtimestamp(found, place)
    assert moment.second == 0
    for text, value in zip(fields[:2], (moment.minute, moment.hour), strict=True):
        assert text == "*" or value >= int(text.removesuffix("/2"))
    # The minute before cannot be reached from any reference that does not skip it.
    assert schedule.next(found - 1, place) == found
    for back in (60, 3600, 86400):
        if found - back > after:
            assert schedule.next(found - back, place) == found


@given(st.integers(0, 2_000_000_000), st.sampled_from(ZONES))
def test_every_minute_is_every_minute_whatever_the_clocks_do(after: int, zone: str) -> None:
    place = ZoneInfo(zone)
    found = list(itertools.islice(cron.parse("* * * * *").instants(after, place), 5))
    assert [later - earlier for earlier, later in itertools.pairwise(found)] == [60] * 4
    offset = datetime.fromtimestamp(found[0], place).utcoffset() or timedelta()
    assert (found[0] + int(offset.total_seconds())) % 60 == 0
