"""How far a flow is: which phase follows from the phases of its jobs. Pure.

The phase is a function of the steps' phases alone, so it does not matter which changes were seen one by one, and no
last change can get lost. Two phases stay whatever happens: Failed and Terminating.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final

from stromboli.api.phases import JobFlowPhase, JobPhase


class Stage(Enum):
    """What a job's phase means for its flow."""

    WAITING = "waiting"
    UNDER_WAY = "under way"
    DONE = "done"
    BROKEN = "broken"


STAGES: Final[Mapping[str, Stage]] = {
    "": Stage.WAITING,
    JobPhase.PENDING: Stage.WAITING,
    JobPhase.RUNNING: Stage.UNDER_WAY,
    JobPhase.RESTARTING: Stage.UNDER_WAY,
    JobPhase.COMPLETING: Stage.UNDER_WAY,
    JobPhase.TERMINATING: Stage.UNDER_WAY,
    JobPhase.ABORTING: Stage.UNDER_WAY,
    JobPhase.ABORTED: Stage.UNDER_WAY,  # it can be resumed, and the flow with it
    JobPhase.COMPLETED: Stage.DONE,
    JobPhase.FAILED: Stage.BROKEN,
    JobPhase.TERMINATED: Stage.BROKEN,
}
"""Every phase of a job. One that nobody knows counts as under way."""

FINAL: Final = frozenset({JobFlowPhase.FAILED, JobFlowPhase.TERMINATING})
"""Phases of a flow in which nothing is done any more."""


def stage(phase: str) -> Stage:
    """What a job's phase means for its flow."""
    return STAGES.get(phase, Stage.UNDER_WAY)


def phase_of(steps: Collection[str]) -> JobFlowPhase:
    """The phase of a flow from the phases of the jobs of all its steps; a job not made yet has the phase ``""``.

    A flow without steps has succeeded.
    """
    stages = {stage(phase) for phase in steps}
    if Stage.BROKEN in stages:
        return JobFlowPhase.FAILED
    if stages <= {Stage.DONE}:
        return JobFlowPhase.SUCCEED
    return JobFlowPhase.PENDING if stages == {Stage.WAITING} else JobFlowPhase.RUNNING


def next_phase(present: str, steps: Collection[str]) -> str:
    """The phase that follows ``present``. A flow that succeeded or ended stays what it is.

    Raises:
        ValueError: ``present`` is no phase of a flow.
    """
    if present and JobFlowPhase(present) in FINAL | {JobFlowPhase.SUCCEED}:
        return present
    return phase_of(steps)
