"""From a flow, its jobs and the answers of probes to what is to be done. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stromboli.api.phases import JobFlowPhase, JobRetainPolicy
from stromboli.controllers.jobflow import conditions, status
from stromboli.controllers.jobflow.conditions import Question
from stromboli.controllers.jobflow.progress import FINAL
from stromboli.controllers.jobflow.view import View
from stromboli.kube.json import JsonObject


@dataclass(frozen=True, slots=True)
class Plan:
    """Jobs to make (by step) and to delete (by name), what is in the way, and the status to write if it differs."""

    create: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    without_template: tuple[str, ...] = ()
    in_the_way: tuple[str, ...] = ()
    status: JsonObject | None = None
    ask_again: bool = False


def is_over(view: View) -> bool:
    """Whether nothing is done for the flow any more."""
    return view.flow.status.state.phase in FINAL


def plan(view: View, answers: Mapping[Question, bool], *, now: float) -> Plan:
    """What is to be done now.

    Raises:
        ValueError: the flow's phase is none.
    """
    if is_over(view):
        return Plan()
    if _is_cleared(view):
        return Plan(delete=tuple(sorted(view.jobs)))
    composed = status.compose(view, now=now)
    if composed["state"]["phase"] == JobFlowPhase.FAILED:
        return Plan(status=composed)
    waiting = [step for step in view.steps.values() if not view.is_made(step.name)]
    ready = [step.name for step in waiting if conditions.is_ready(view, step, answers)]
    return Plan(
        create=tuple(step for step in ready if step in view.templates),
        without_template=tuple(step for step in ready if step not in view.templates),
        in_the_way=tuple(sorted(view.strangers)),
        status=composed,
        ask_again=any(step.name not in ready for step in waiting) and conditions.is_watching(view),
    )


def _is_cleared(view: View) -> bool:
    """Whether the jobs of the flow are not to be kept: it has succeeded, which is on record."""
    flow = view.flow
    wanted = flow.spec.job_retain_policy == JobRetainPolicy.DELETE
    return wanted and flow.status.state.phase == JobFlowPhase.SUCCEED
