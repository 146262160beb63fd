"""Go durations, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import durations
from stromboli.api.durations import BadDuration

PARSED = {
    "0": 0,
    "+0": 0,
    "0s": 0,
    "90s": 90 * durations.SECOND,
    "1m30s": 90 * durations.SECOND,
    "1.5h": 90 * durations.MINUTE,
    "-2m": -2 * durations.MINUTE,
    "250ms": 250 * durations.MILLISECOND,
    "1us": 1000,
    "1\u00b5s": 1000,
    "1\u03bcs": 1000,
    ".5s": 500 * durations.MILLISECOND,
    "1.s": durations.SECOND,
    "1.5ns": 1,
    "1s1h": durations.HOUR + durations.SECOND,
}


@pytest.mark.parametrize("text", PARSED)
def test_parse(text: str) -> None:
    assert durations.parse(text) == PARSED[text]


@pytest.mark.parametrize("text", ["", "60", "1d", "-", "s", "1 s", "1s ", "1.5.s", "00", "3000000h", "0.", "1m30"])
def test_what_is_no_duration_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(BadDuration, match=repr(text)):
        durations.parse(text)


FORMATTED = {
    "90s": "1m30s",
    "3600s": "1h0m0s",
    "1500ms": "1.5s",
    "0": "0s",
    "250000us": "250ms",
    "1500ns": "1.5\u00b5s",
    "7ns": "7ns",
    "-90s": "-1m30s",
    "1h0m0.001s": "1h0m0.001s",
}


@pytest.mark.parametrize("text", FORMATTED)
def test_canonical_text(text: str) -> None:
    assert durations.format(durations.parse(text)) == FORMATTED[text]


@given(st.integers(-durations.LONGEST, durations.LONGEST))
def test_formatted_durations_read_back_as_themselves(nanoseconds: int) -> None:
    assert durations.parse(durations.format(nanoseconds)) == nanoseconds


def test_seconds() -> None:
    assert durations.seconds("1m30.5s") == 90.5
    assert durations.from_seconds(90.5) == "1m30.5s"
