"""The PodGroup condition ``Admitted``: why a group has not been let in, with numbers. An addition of ours.

Volcano leaves a group that no queue or cluster admits without any condition: its user sees ``Pending`` and nothing
else. The condition appears with the first refusal, is written anew when the reason changes or its numbers have aged,
and turns ``True`` when the group is let in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api import core
from stromboli.api.phases import PodGroupConditionType
from stromboli.scheduler.core.view import Condition

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Job
    from stromboli.scheduler.core.view import Refusal

ADMITTED = PodGroupConditionType.ADMITTED.value
FITS = PodGroupConditionType.FITS.value
OWN_CONDITIONS = frozenset({ADMITTED, FITS})
"""Condition types that Volcano does not know."""

HOLD_SECONDS = 30.0
"""Numbers change with every pod that comes or goes; a message whose reason stays is renewed no more often than this."""


def condition_of(job: Job, refusal: Refusal | None, now: float) -> Condition | None:
    """The condition to set on a job at the end of a cycle, or None to leave things as they are."""
    if not job.is_pending:
        old = _present(job)
        if old is None or old.status == "True":
            return None
        return Condition(ADMITTED, ADMITTED, "the group was admitted")
    return refused(job, refusal, now) if refusal is not None else None


def refused(job: Job, refusal: Refusal, now: float) -> Condition | None:
    """The condition that says why a group is not let in, or None when what is written still says so."""
    old, condition = _present(job), Condition(ADMITTED, refusal.reason, refusal.message, "False")
    return None if old is not None and still_good(old, condition, now) else condition


def _present(job: Job) -> core.PodGroupCondition | None:
    assert job.pod_group is not None
    return next((item for item in job.pod_group.status.conditions if item.type == ADMITTED), None)


def denies_fit(condition: Condition) -> bool:
    """Whether a plugin says of a gang that it must not be placed though there is room."""
    return condition.type == FITS and condition.status == "False"


def still_good(old: core.PodGroupCondition, new: Condition, now: float) -> bool:
    """Whether what is written need not be written anew: it says the same, or its numbers have not aged."""
    if (old.status, old.reason) != (new.status, new.reason):
        return False
    if old.message == new.message:
        return True
    written = core.timestamp(old.last_transition_time) if old.last_transition_time else 0.0
    return now - written < HOLD_SECONDS
