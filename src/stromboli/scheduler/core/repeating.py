"""Events of groups that wait: said when there is something new to say, repeated less and less often when there is not.

A group that waits is looked at in every cycle, and its text is worked out in every cycle. An event for each would tell
nobody anything and cost a request a second and group. An addition of ours: the original leaves it to clients to fold
equal events.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from stromboli.scheduler.core.view import JobEvent

REASON = "Unschedulable"
"""Events with other reasons are about something that has happened, and always said."""
NUMBERS_SECONDS = 30.0
"""A text in which only numbers have changed is said no more often than this."""
FIRST_REPEAT_SECONDS = 300.0
LAST_REPEAT_SECONDS = 3600.0
"""The same text is said again after the first time, then twice as late every time, at last this often."""
_KEPT = 4
_NUMBER = re.compile(r"(?<![\w-])[-\d][\w.]*")


def words_of(text: str) -> str:
    """A text without its numbers and amounts; names with digits in them stay as they are."""
    return _NUMBER.sub("#", text)


@dataclass(slots=True)
class _Said:
    message: str
    at: float
    repeat: float = FIRST_REPEAT_SECONDS


class Repeats:
    """What has been said about each job. Bounded: a few texts a job, nothing of jobs that are gone."""

    def __init__(self) -> None:
        self._jobs: dict[str, tuple[str, dict[tuple[str, str], _Said]]] = {}

    def fresh(self, events: Iterable[JobEvent], now: float) -> list[JobEvent]:
        """The events that are to be recorded now; the others have been said."""
        return [event for event in events if event.reason != REASON or self._is_fresh(event, now)]

    def recall(self, job_id: str, uid: str, type: str, message: str, now: float) -> None:
        """Takes a text for said, because its condition shows it: nothing is known of the time before a restart."""
        if job_id not in self._jobs:
            self._texts(job_id, uid)[type, words_of(message)] = _Said(message, now)

    def forget(self, job_id: str) -> None:
        """The job is gone, or what was said could not be written."""
        self._jobs.pop(job_id, None)

    def __len__(self) -> int:
        return len(self._jobs)

    def _texts(self, job_id: str, uid: str) -> dict[tuple[str, str], _Said]:
        known = self._jobs.get(job_id)
        if known is None or known[0] != uid:
            known = self._jobs[job_id] = (uid, {})
        return known[1]

    def _is_fresh(self, event: JobEvent, now: float) -> bool:
        texts, key = self._texts(event.job_id, event.uid), (event.type, words_of(event.message))
        said = texts.get(key)
        if said is None:
            texts[key] = _Said(event.message, now)
            if len(texts) > _KEPT:
                del texts[min(texts, key=lambda each: texts[each].at)]
            return True
        same = said.message == event.message
        if now - said.at < (said.repeat if same else NUMBERS_SECONDS):
            return False
        said.repeat = min(2 * said.repeat, LAST_REPEAT_SECONDS) if same else FIRST_REPEAT_SECONDS
        said.message, said.at = event.message, now
        return True
