"""How many pods got a node in each second, as far back as the page draws."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

WINDOW: Final = 300
"""Seconds that are remembered."""
STEP: Final = 5
"""Seconds that one column of the drawing stands for."""
RECENT: Final = 10
"""Seconds that the present rate is the mean of."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Binds a second: now, in the last minute, at most (in one second), and by column from old to new."""

    now: float
    minute: int
    peak: int
    columns: tuple[float, ...]
    step: int = STEP


class Starts:
    """Counts binds by the second in which the pod says it was bound. Each bind is told once."""

    def __init__(self) -> None:
        self._seconds: Counter[int] = Counter()

    def bound(self, moment: float, now: float) -> None:
        """A pod got its node at ``moment``; a time unknown or ahead of ours counts as now."""
        second = int(moment) if 0 < moment <= now else int(now)
        if second > now - WINDOW:
            self._seconds[second] += 1
        if len(self._seconds) > 2 * WINDOW:
            self._forget(now)

    def pace(self, now: float) -> Pace:
        """The rates as of ``now``. The second that is not over yet counts with the one before."""
        end = int(now) + 1
        columns = tuple(round(self._between(start, start + STEP) / STEP, 2) for start in range(end - WINDOW, end, STEP))
        peak = max((count for second, count in self._seconds.items() if second > now - WINDOW), default=0)
        return Pace(round(self._between(end - RECENT, end) / RECENT, 2), self._between(end - 60, end), peak, columns)

    def _between(self, start: int, end: int) -> int:
        return sum(self._seconds[second] for second in range(start, end))

    def _forget(self, now: float) -> None:
        for second in [second for second in self._seconds if second <= now - WINDOW]:
            del self._seconds[second]
