"""How soon a job is looked at after its pods have changed, and when what was counted is written.

While the pods of a gang start or end one after another, every look at them counts something else. A look costs in
proportion to the pods, so it waits in proportion to them: a job that keeps changing takes a bounded share of the
controller's time, however large it is.

Writing each of these counts would cost the API server more than the pods. So counters alone wait, for a bounded time
since they first differed from what is stored; the next pass that has more to say takes them along. Nothing is kept for
later but that time: what is written is always what the pass that writes it has seen, and a controller that dies while
counters wait is followed by one that counts anew. Everything else (a phase, a reason, a version, a success that must
not be run again) is never held up, because users, other controllers and the next life of this one act on it.
"""

from __future__ import annotations

from stromboli.kube.json import JsonObject

SHORTEST_DELAY, LONGEST_DELAY = 0.05, 1.0
"""Bounds, in seconds, of what passes between a change of a pod and the pass that takes it into account."""
DELAY_OF_A_POD = 0.002
"""What each pod of the job adds to that delay, in seconds: a hundred times and more what it adds to a pass."""
LONGEST_WAIT = 1.0
"""Seconds by which the counters in a status may be behind what was counted last."""
COUNTERS = frozenset({"pending", "running", "succeeded", "failed", "unknown", "terminating", "taskStatusCount"})
"""Fields of the status that nobody waits for; the phase that follows from them says what matters."""


def counting_delay(pods: int) -> float:
    """Seconds until a job of so many pods is counted, once one of them has changed."""
    return min(LONGEST_DELAY, max(SHORTEST_DELAY, pods * DELAY_OF_A_POD))


def may_wait(patch: JsonObject) -> bool:
    """Whether a patch of a status changes nothing but counters."""
    return patch.keys() <= COUNTERS
