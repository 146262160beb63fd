"""The actions that a policy may name (spec 05). Each module holds one action."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.scheduler.actions import (
    allocate,
    backfill,
    enqueue,
    gangpreempt,
    gangreclaim,
    preempt,
    reclaim,
    shuffle,
)
from stromboli.scheduler.core.acting import Action

ACTIONS: Mapping[str, Action] = {
    "enqueue": enqueue.enqueue,
    "allocate": allocate.allocate,
    "backfill": backfill.backfill,
    "preempt": preempt.preempt,
    "reclaim": reclaim.reclaim,
    "gangpreempt": gangpreempt.gangpreempt,
    "gangreclaim": gangreclaim.gangreclaim,
    "shuffle": shuffle.shuffle,
}
"""Actions by the names used in policy files."""
