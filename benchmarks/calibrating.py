"""How fast the machine is now: seconds for a fixed piece of work, to compare figures of other machines with."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable

WORK = "sum(range(1000000))"


def wall() -> float:
    """By the clock, as all figures beside which it is given."""
    return _measured(time.perf_counter)


def cpu() -> float:
    """Without the time that others had: what to scale CPU seconds by where a machine is shared."""
    return _measured(time.process_time)


def _measured(timer: Callable[[], float]) -> float:
    return round(min(timeit.repeat(WORK, number=10, repeat=5, timer=timer)), 3)
