"""Which queue has got room from which, so that queues do not take turns for ever (pains P44, P45 and P68).

The first tier that lets a victim go decides alone (spec 04 section 27.2). So a queue may take from another what a later
tier would have spared, and that one may take it back with as good a right. And whoever has lost its tasks may be served
again before the room that they made is used.

* A queue takes from one that has got room from it, directly or through others, only what all tiers let go. Without
  their consent room thus goes only where it does not come back from, be it taken, or found when it was made for
  somebody else. (What is left of it when its taker has been bound is not followed.) So evictions between queues that
  not all tiers consent to come to an end, as long as nothing else changes anything; whether the others do is for the
  plugins that share things out (``plugins.reclaiming``, ``plugins.proportion``).
* A job that has taken from a queue in vain, none of its tasks being bound since, takes nothing from it for a while:
  half a minute, and twice as long each time. Whoever only had bad luck waits no longer than it has waited already.

What a cycle decides counts from the next one on: within a cycle victims are chosen as specified.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TypeAlias

from stromboli.scheduler.core.pauses import Pauses
from stromboli.scheduler.core.records import Job, Node

_Known: TypeAlias = tuple[str, str]
"""Name and UID of a job: one that is made anew has taken nothing."""
_KEY = "takings"
FIRST_PAUSE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Taking:
    """Room that one job made for itself on a node at the cost of another."""

    taker: Job
    victim: Job
    node: Node


@dataclass(frozen=True, slots=True)
class _Room:
    taker: _Known
    queue: str
    """Whose room it was."""
    node: str


class Takings:
    """What is known from earlier cycles."""

    def __init__(self) -> None:
        self._takers: dict[str, set[str]] = {}
        """By queue: those that have got room from it."""
        self._unused: frozenset[_Room] = frozenset()
        """Room that was made for jobs of which nothing was bound since."""
        self._pauses = Pauses[tuple[_Known, str]]()
        """By job and the queue that it has taken from in vain."""
        self._now = 0.0

    @classmethod
    def kept_in(cls, memory: MutableMapping[str, object], now: float) -> Takings:
        """Those of a mirror, as they are now in a cycle; there are none at first."""
        kept = memory.setdefault(_KEY, cls())
        assert isinstance(kept, cls)
        kept._now = now
        return kept

    def note(self, takings: Iterable[Taking], binds: Iterable[tuple[Job, Node]], jobs: Mapping[str, Job]) -> None:
        """Adds what a cycle decided, and forgets what concerned jobs that are not among these by now."""
        if self._unused:
            self._note_use(list(binds), jobs)
        made = {_Room(_known(one.taker), one.victim.queue_name, one.node.name): one.taker for one in takings}
        for room, taker in made.items():
            self._gains(taker.queue_name, room.queue)
        for key in {(room.taker, room.queue) for room, taker in made.items() if room.queue != taker.queue_name}:
            self._pauses.begin(key, self._now, FIRST_PAUSE_SECONDS)
        self._unused |= made.keys()

    @property
    def blank(self) -> bool:
        """Whether there is nothing to go by yet."""
        return not self._takers

    def contested(self, taker: Job, queues: Collection[str]) -> set[str]:
        """Those of the queues from which the taker may take only what all tiers let go."""
        return self._ahead_of(taker.queue_name).intersection(queues) - {taker.queue_name} if self._takers else set()

    def barred(self, taker: Job, queues: Collection[str]) -> set[str]:
        """Those of the queues from which the taker may take nothing now. Its own is never among them."""
        return {queue for queue in queues if self._pauses.lasts((_known(taker), queue), self._now)}

    def _note_use(self, binds: Collection[tuple[Job, Node]], jobs: Mapping[str, Job]) -> None:
        by_node: dict[str, set[str]] = {}
        for job, node in binds:
            by_node.setdefault(node.name, set()).add(job.queue_name)
        for room in self._unused:
            for queue in by_node.get(room.node, ()):
                self._gains(queue, room.queue)
        served = {_known(job) for job, _ in binds}
        waiting = {room.taker for room in self._unused if room.taker not in served and _is_there(room.taker, jobs)}
        self._unused = frozenset(room for room in self._unused if room.taker in waiting)
        self._pauses.keep(lambda key: key[0] in waiting)

    def _gains(self, queue: str, other: str) -> None:
        if queue != other:
            self._takers.setdefault(other, set()).add(queue)

    def _ahead_of(self, queue: str) -> set[str]:
        """Queues that have got room from it, directly or through others."""
        reached: set[str] = set()
        left = [queue]
        while left:
            fresh = self._takers.get(left.pop(), set()) - reached
            reached |= fresh
            left.extend(fresh)
        return reached


def _known(job: Job) -> _Known:
    return job.id, job.uid


def _is_there(job: _Known, jobs: Mapping[str, Job]) -> bool:
    name, uid = job
    return name in jobs and jobs[name].uid == uid
