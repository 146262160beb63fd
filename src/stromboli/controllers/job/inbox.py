"""Occurrences that were reported for a job and not dealt with yet.

Only what the present state does not show comes here: evictions (the pod is gone), Commands (they are deleted when
consumed) and what a failed pass was about to act on. Bounded, because a reporter must never fill the memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.controllers.job.policies import Occurrence
from stromboli.kube.stores import Key

MOST_PER_JOB = 1024


class Inbox:
    """Reported occurrences by job key, oldest first, each once."""

    def __init__(self) -> None:
        self._waiting: dict[Key, dict[Occurrence, None]] = {}

    def report(self, key: Key, occurrence: Occurrence) -> None:
        """Add an occurrence; the oldest is dropped when a job has too many."""
        waiting = self._waiting.setdefault(key, {})
        waiting[occurrence] = None
        if len(waiting) > MOST_PER_JOB:
            del waiting[next(iter(waiting))]

    def waiting(self, key: Key) -> tuple[Occurrence, ...]:
        """What is waiting for a job."""
        return tuple(self._waiting.get(key, ()))

    def settle(self, key: Key, seen: Iterable[Occurrence], remembered: Iterable[Occurrence]) -> None:
        """Drop what a pass has ``seen``, except what it wants to be ``remembered``. Later reports stay."""
        keep = set(remembered)
        waiting = self._waiting.get(key, {})
        for occurrence in seen:
            if occurrence not in keep:
                waiting.pop(occurrence, None)
        if not waiting:
            self._waiting.pop(key, None)

    def forget(self, key: Key) -> None:
        """The job is gone."""
        self._waiting.pop(key, None)
