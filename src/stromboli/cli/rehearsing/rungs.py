"""What the rungs of an explanation's ladder are made of, and how amounts are written in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stromboli.api import core
from stromboli.scheduler.core import amounts
from stromboli.scheduler.core.columns import Floats
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.records import Task

UNLIMITED = "-"


@dataclass(frozen=True)
class Rung:
    """One level of the ladder: a title, and lines for people."""

    title: str
    lines: tuple[str, ...]


def vector(cycle: Cycle, listed: core.ResourceList) -> Floats:
    """A resource list as a row; NaN where it says nothing."""
    return cycle.view.columns.vector(amounts.read(listed), missing=np.nan)


def amount(cycle: Cycle, column: int, value: float) -> str:
    """An amount of a column's resource; ``-`` for none."""
    if not np.isfinite(value):
        return UNLIMITED
    name = cycle.view.columns.names[column]
    return amounts.write({name: float(value)})[name]


def request_of(cycle: Cycle, task: Task) -> str:
    """``cpu 2, memory 1Gi``."""
    written = amounts.write(cycle.view.columns.amounts(task.request, task.shape.requested))
    return (
        ", ".join(f"{name} {amount}" for name, amount in written.items() if name != "pods" and amount != "0")
        or "nothing"
    )
