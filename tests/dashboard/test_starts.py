"""Binds by the second."""

from __future__ import annotations

from stromboli.dashboard.starts import STEP, WINDOW, Starts

NOW = 1_000_000.5


def test_rates() -> None:
    starts = Starts()
    for moment in (NOW - 1, NOW - 1, NOW - 30, NOW - 200):
        starts.bound(moment, NOW)
    pace = starts.pace(NOW)
    assert (pace.now, pace.minute, pace.peak) == (0.2, 3, 2)
    assert len(pace.columns) == WINDOW // STEP
    assert round(sum(pace.columns) * STEP) == 4


def test_a_moment_unknown_or_in_the_future_is_now() -> None:
    starts = Starts()
    starts.bound(0.0, NOW)
    starts.bound(NOW + 3600, NOW)
    assert starts.pace(NOW).columns[-1] == 2 / STEP


def test_what_is_older_than_the_window_is_not_counted_and_not_kept() -> None:
    starts = Starts()
    for second in range(10 * WINDOW):
        starts.bound(NOW + second, NOW + second)
    pace = starts.pace(NOW + 10 * WINDOW - 1)
    assert round(sum(pace.columns) * STEP) == WINDOW
    starts.bound(NOW, NOW + 10 * WINDOW)
    assert round(sum(starts.pace(NOW + 10 * WINDOW - 1).columns) * STEP) == WINDOW
