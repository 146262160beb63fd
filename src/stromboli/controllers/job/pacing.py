"""When a status is written: at once, or together with what is about to follow.

While the pods of a gang start or end one after another, every look at them counts something else, and writing each of
these counts would cost the API server more than the pods. So counters alone wait, for a bounded time since they first
differed from what is stored; the next pass that has more to say takes them along. Nothing is kept for later but that
time: what is written is always what the pass that writes it has seen, and a controller that dies while counters wait is
followed by one that counts anew. Everything else (a phase, a reason, a version, a success that must not be run again)
is never held up, because users, other controllers and the next life of this one act on it.
"""

from __future__ import annotations

from stromboli.kube.json import JsonObject

LONGEST_WAIT = 1.0
"""Seconds by which the counters in a status may be behind the pods."""
COUNTERS = frozenset({"pending", "running", "succeeded", "failed", "unknown", "terminating", "taskStatusCount"})
"""Fields of the status that nobody waits for; the phase that follows from them says what matters."""


def may_wait(patch: JsonObject) -> bool:
    """Whether a patch of a status changes nothing but counters."""
    return patch.keys() <= COUNTERS
