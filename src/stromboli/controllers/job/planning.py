"""Planning: from what is observed of a job to the operations that bring it one step further. Pure.

A plan decides on one action (:mod:`.deciding`), looks up what that action means in the job's phase (:mod:`.phases`),
and spells it out as a sync (:mod:`.syncing`) or a kill (:mod:`.killing`).

Order within a plan makes it safe to stop anywhere. The new phase, version and retry count are written *before* pods are
killed: a controller that dies in between finds the phase, and the phase finishes the killing. Everything that is done
before that write may be done twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.api import durations
from stromboli.api.phases import JobAction as Action
from stromboli.controllers.job import phases
from stromboli.controllers.job.deciding import Decision, decide
from stromboli.controllers.job.killing import kill_job, kill_target
from stromboli.controllers.job.observed import Observed
from stromboli.controllers.job.operations import Operation, RecordEvent
from stromboli.controllers.job.phases import OTHER, Work
from stromboli.controllers.job.syncing import sync
from stromboli.kube.events import EventType


@dataclass(frozen=True, slots=True)
class Plan:
    """Operations in order, and the decision behind them."""

    operations: tuple[Operation, ...]
    decision: Decision


def plan(view: Observed, now: float) -> Plan:
    """What to do about a job at ``now`` (seconds since the epoch). Nothing at all for one that is being deleted.

    Raises:
        Refused: the job asks for something that cannot be had now (a queue, a claim, a plugin).
    """
    decision = decide(view, now)
    return Plan(operations_for(view, decision, now), decision)


def operations_for(view: Observed, decision: Decision, now: float) -> tuple[Operation, ...]:
    """The operations that carry out ``decision``; raises as :func:`plan`."""
    if view.job.metadata.deletion_timestamp:
        return ()
    return (*_announcements(decision), *_work(view, decision, now))


def _work(view: Observed, decision: Decision, now: float) -> list[Operation]:
    step = phases.step(phases.phase_of(view.job.status.state.phase), decision.action)
    match step.work:
        case Work.SYNC:
            return sync(view, step, now)
        case Work.KILL_JOB:
            return kill_job(view, step, decision, now)
        case Work.KILL_TARGET:
            return kill_target(view, step, decision, now)


def _announcements(decision: Decision) -> list[Operation]:
    """Events about the action that is carried out and those that have been put off (spec 02 section 18)."""
    told: list[Operation] = [
        RecordEvent(EventType.NORMAL, "ExecuteAction", f"Execute action {action} after {durations.from_seconds(delay)}")
        for action, delay in decision.announced
    ]
    if decision.action not in (Action.SYNC_JOB, OTHER):
        # The trailing blank is part of the known text.
        told.append(RecordEvent(EventType.NORMAL, "ExecuteAction", f"Start to execute action {decision.spelled} "))
    return told
