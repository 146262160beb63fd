"""Holding back gangs whose binds are refused again and again, so that they do not win every cycle (pain P69). Pure.

The first refusal is free: the gang is tried again in the next cycle. From the second on the gang is held for ``first``
seconds, then twice that, up to ``maximum``. The record of a gang ends when every pod that was refused is bound or gone.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

JobT = TypeVar("JobT", bound=Hashable)

FIRST_SECONDS = 2.0
MAXIMUM_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Hold:
    """Until when a gang must not be placed (seconds since the epoch), and what was said when it was refused last."""

    until: float
    error: str = ""


@dataclass(slots=True)
class _Record:
    rounds: int = 0
    cycle: int = -1
    until: float = 0.0
    error: str = ""
    refused: set[str] = field(default_factory=set)


class GangBackoff(Generic[JobT]):
    """Which gangs to leave out of a cycle, and until when."""

    def __init__(self, *, first: float = FIRST_SECONDS, maximum: float = MAXIMUM_SECONDS) -> None:
        self._first = first
        self._maximum = maximum
        self._records: dict[JobT, _Record] = {}

    def refused(self, job: JobT, uid: str, *, cycle: int, now: float, error: str = "") -> float:
        """Pod ``uid``, placed by ``cycle``, could not be bound; answers the time until which its gang is held.

        All refusals of one cycle count once: a gang is not punished for its size. The first ``error`` is kept.
        """
        record = self._records.setdefault(job, _Record())
        record.refused.add(uid)
        if cycle > record.cycle:
            record.cycle = cycle
            record.rounds += 1
            record.until = now + self._delay(record.rounds)
            record.error = error
        return record.until

    def settled(self, job: JobT, uid: str) -> None:
        """Pod ``uid`` was bound or is gone."""
        record = self._records.get(job)
        if record is None:
            return
        record.refused.discard(uid)
        if not record.refused:
            del self._records[job]

    def held(self, now: float) -> dict[JobT, Hold]:
        """Gangs that must not be placed at ``now``."""
        return {job: Hold(record.until, record.error) for job, record in self._records.items() if record.until > now}

    def __len__(self) -> int:
        return len(self._records)

    def _delay(self, rounds: int) -> float:
        if rounds < 2:
            return 0.0
        return float(min(self._maximum, self._first * 2 ** min(rounds - 2, 30)))
