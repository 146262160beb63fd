"""Ages in both formats, at the edges of every unit (spec 08 section 1)."""

from __future__ import annotations

import pytest

from stromboli.cli.vc import ages

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400

CASES = {
    -2: "<invalid>",
    -1: "0s",
    0: "0s",
    62: "62s",
    119: "119s",
    2 * MINUTE: "2m",
    3 * MINUTE + 10: "3m10s",
    10 * MINUTE: "10m",
    121 * MINUTE: "121m",
    3 * HOUR: "3h",
    5 * HOUR + 7 * MINUTE: "5h7m",
    8 * HOUR: "8h",
    47 * HOUR: "47h",
    2 * DAY: "2d",
    5 * DAY + 9 * HOUR: "5d9h",
    8 * DAY: "8d",
    531 * DAY: "531d",
    5 * YEAR + 89 * DAY: "5y89d",
    12 * YEAR: "12y",
}


@pytest.mark.parametrize("seconds", CASES)
def test_lengths(seconds: int) -> None:
    assert ages.duration(seconds) == CASES[seconds]


def test_only_events_write_zero_days() -> None:
    assert ages.duration(3 * YEAR) == "3y"
    assert ages.duration(3 * YEAR, zero_days=True) == "3y0d"


UNKNOWN = {"nothing": None, "an empty text": "", "no time": "soon", "a number": 5}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_no_time_is_unknown(name: str) -> None:
    assert ages.age(UNKNOWN[name], 0.0) == "<unknown>"
    assert ages.date(UNKNOWN[name]) == "0001-01-01"
    assert ages.moment(UNKNOWN[name]) == "0001-01-01 00:00:00 +0000 UTC"


def test_times_are_told_in_utc() -> None:
    assert ages.moment("2024-01-31T12:00:00+02:00") == "2024-01-31 10:00:00 +0000 UTC"
