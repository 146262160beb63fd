"""Which start is due, and when to look again: spec 03 section 7.5 and the cases of section 7.7."""

from __future__ import annotations

from datetime import UTC
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import cron
from stromboli.controllers.cronjob.timing import Missed, NoTimes, Timetable, due, wait

T = 1741687200.0  # 2025-03-11T10:00:00Z, a Tuesday
M, H, D = 60.0, 3600.0, 86400.0


def table(schedule: str) -> Timetable:
    return Timetable(cron.parse(schedule), UTC)


class Case(NamedTuple):
    schedule: str
    earliest: float
    now: float
    want: float | None
    missed: Missed
    deadline: int | None = None


DUE = {
    "one": Case("0 * * * *", 0, 61 * M, 60 * M, Missed.NONE),
    "one missed": Case("* * * * *", 10, 301, 300, Missed.FEW),
    "office hours": Case("30 6-16/4 * * 1-5", 30 * M, 24 * H + 31 * M, 24 * H + 30 * M, Missed.FEW),
    "over a weekend": Case("30 6-16/4 * * 1-5", 30 * M, 96 * H + 31 * M, 76 * H + 30 * M, Missed.FEW),
    "an estimate that overshoots": Case("30 10,11,12 * * 1-5", 30 * M, 30 * H + 30 * M, None, Missed.FEW),
    "a week of hours": Case("@every 1h", 1 * M, 7 * D, 6 * D + 23 * H + 1 * M, Missed.MANY),
    "behind the deadline": Case("*/5 * * * *", 30 * M, 32 * M, None, Missed.NONE, 60),
    "within the deadline": Case("*/5 * * * *", 0, 7 * M, 5 * M, Missed.NONE, 180),
    "not yet": Case("*/5 * * * *", 0, 3 * M, None, Missed.NONE),
    "a clock that went back": Case("*/5 * * * *", 2 * H, 1 * H, None, Missed.NONE),
}


@pytest.mark.parametrize("case", DUE.values(), ids=DUE.keys())
def test_what_is_due(case: Case) -> None:
    found = due(table(case.schedule), earliest=T + case.earliest, now=T + case.now, deadline=case.deadline)
    assert (found.start, found.missed) == (None if case.want is None else T + case.want, case.missed)


def test_times_that_never_come() -> None:
    with pytest.raises(NoTimes, match="less than 1 second"):
        due(table("59 23 31 2 *"), earliest=T + 10, now=T + H)
    assert wait(table("59 23 31 2 *"), earliest=T + 10, now=T + H) is None


WAITS = {
    "office hours": ("30 6-16/4 * * 1-5", 30 * M, 24 * H + 31 * M, 3 * H + 59 * M),
    "an estimate that overshoots": ("30 10,11,12 * * 1-5", 30 * M, 30 * H + 30 * M, 18 * H),
    "weekly": ("0 12 * * 2", 2 * H, 19 * D + 1 * H + 30 * M, 48 * H + 30 * M),
    "first": ("0 12 * * 3", 0, 6 * H, 20 * H),
    "a new schedule of minutes": ("*/1 * * * *", 0, 0, 1 * M),
    "a new distance": ("@every 3m", 0, 0, 3 * M),
}


@pytest.mark.parametrize(("schedule", "earliest", "now", "want"), WAITS.values(), ids=WAITS.keys())
def test_when_to_look_again(schedule: str, earliest: float, now: float, want: float) -> None:
    assert wait(table(schedule), earliest=T + earliest, now=T + now) == pytest.approx(want + 0.1)


SCHEDULES = st.sampled_from(["*/5 * * * *", "30 6-16/4 * * 1-5", "0 12 * * 2", "@every 90s", "0 0 1 * *", "@hourly"])


@given(SCHEDULES, st.floats(0, 400 * D), st.one_of(st.none(), st.integers(0, 100_000)))
def test_what_is_due_is_a_start_that_has_come_and_is_not_too_late(
    schedule: str, passed: float, deadline: int | None
) -> None:
    timetable, now = table(schedule), T + passed
    found = due(timetable, earliest=T, now=now, deadline=deadline)
    if found.start is not None:
        since = T if deadline is None else max(T, now - deadline)
        assert since < found.start <= now
        following = timetable.next(found.start)
        assert following is not None and following > now, "only the latest missed start is run"


@given(SCHEDULES.filter(lambda text: "every" not in text), st.floats(0, 400 * D))
def test_the_next_look_is_just_after_the_next_start(schedule: str, passed: float) -> None:
    now = T + passed
    seconds = wait(table(schedule), earliest=T, now=now)
    following = table(schedule).next(now)
    assert seconds is not None and following is not None
    assert now + seconds == pytest.approx(following + 0.1, abs=1e-3)
