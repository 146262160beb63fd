"""Which PodGroups wait, and what their conditions say about why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stromboli.api import core
from stromboli.api.complaints import complaint, names_cause
from stromboli.api.kinds import JOBS
from stromboli.api.phases import PodGroupPhase
from stromboli.api.reasons import NEXT_STEPS, WaitReason

_WAITING: Final = frozenset({"", PodGroupPhase.PENDING, PodGroupPhase.INQUEUE})
_STEPS: Final = {str(reason): step for reason, step in NEXT_STEPS.items()}


@dataclass(frozen=True, slots=True)
class Why:
    """Why something waits: one word, the numbers, and what its owner can do (empty where the numbers say it)."""

    reason: str = ""
    message: str = ""
    step: str = ""


NOTHING: Final = Why()


def waits(group: core.PodGroup) -> bool:
    """Whether the gang has not started."""
    return group.status.phase in _WAITING


def why(group: core.PodGroup) -> Why:
    """What the conditions complain about; empty for a gang that does not wait."""
    if not waits(group):
        return NOTHING
    found = complaint(group.status.conditions)
    if found is None:
        return told(WaitReason.NOT_ADMITTED_YET, "no scheduling cycle has looked at it yet")
    if names_cause(found):
        return Why(found.reason, found.message)
    return told(found.reason, found.message)


def told(reason: str, message: str) -> Why:
    """A reason with the next step that belongs to it."""
    return Why(str(reason), message, _STEPS.get(reason, ""))


def job_of(group: core.PodGroup) -> str:
    """Name of the vcjob that owns the gang; empty for other gangs."""
    return next((owner.name for owner in group.metadata.owner_references if owner.kind == JOBS.kind), "")
