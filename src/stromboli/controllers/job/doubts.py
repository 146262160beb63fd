"""An end to the belief in what was created and what no watch has shown since: pods, and the PodGroup.

They are believed in as soon as their creation is answered, for a limited time (:data:`.ledger.LONGEST_LAG`). A pod that
came and went meanwhile, or while the watch was down, is missed by nobody: no event will ever tell of it, so when the
belief ends somebody has to look. A pod that does show ends the belief itself, and then no pass is asked for: that costs
one timer for each pass that creates something, and nothing else.
"""

from __future__ import annotations

from functools import partial

from stromboli.controllers.job.ledger import Ledger
from stromboli.kube.clocks import Clock
from stromboli.kube.queues import WorkQueue
from stromboli.kube.stores import Key


class Doubts:
    """Asks for passes over jobs whose created pods have not been seen in time."""

    def __init__(self, ledger: Ledger, queue: WorkQueue[Key], clock: Clock) -> None:
        self._ledger, self._queue, self._clock = ledger, queue, clock

    def begin(self, key: Key, job_uid: str) -> None:
        """A pass over the job has ended; see to what it believes in, unless that is seen to already."""
        memory = self._ledger.known(job_uid)
        end = memory.doubtful_at if memory is not None and not memory.doubted else None
        if memory is None or end is None:
            return
        memory.doubted = True
        self._clock.call_later(end - self._clock.monotonic(), partial(self._look, key, job_uid))

    def _look(self, key: Key, job_uid: str) -> None:
        memory = self._ledger.known(job_uid)
        if memory is None:
            return
        memory.doubted = False
        end = memory.doubtful_at
        if end is not None and end <= self._clock.monotonic():
            self._queue.add(key)  # the pass ends the belief, and begins with what is believed of others
        else:
            self.begin(key, job_uid)
