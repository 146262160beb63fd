"""Lifecycle policies of jobs and tasks: which events and actions users may name, and how (spec 07 section 8.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from stromboli.webhooks.errors import FieldError, duplicate, invalid, sentence
from stromboli.webhooks.shapes import LifecyclePolicy

ANY_EVENT: Final = "*"
EVENTS: Final = tuple(
    sorted((ANY_EVENT, "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated"))
)
ACTIONS: Final = tuple(
    sorted(
        ("AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob",
         "ResumeJob")
    )
)  # fmt: skip
_ALLOWED: Final = f" valid events are [{' '.join(EVENTS)}], valid actions are [{' '.join(ACTIONS)}];"


def policy_faults(policies: Sequence[LifecyclePolicy], field: str, cause_field: str | None = None) -> list[FieldError]:
    """One error for the whole list, or none; ``field`` is the path that stands in the text.

    ``cause_field`` is the exact path where it differs (texts of task policies do not carry the task's index).
    """
    faults = list(_faults(policies, field))
    if not faults:
        return []
    count = "1 error" if len(faults) == 1 else f"{len(faults)} errors"
    block = "".join(f"\t* {fault.text}\n" for fault in faults)
    return [sentence(cause_field or field, f"{count} occurred:\n{block}\n{_ALLOWED}", faults[0].reason)]


def _faults(policies: Sequence[LifecyclePolicy], field: str) -> Iterator[FieldError]:
    """The faults of the first bad policy, then the rule that concerns all events together."""
    events: set[str] = set()
    exit_codes: set[int] = set()
    for policy in policies:
        fault = (
            _form_fault(policy, field) or _event_fault(policy, field, events) or _code_fault(policy, field, exit_codes)
        )
        if fault:
            yield fault
            break
    if ANY_EVENT in events and len(events) > 1:
        yield sentence(field, "if there's * here, no other policy should be here")


def _form_fault(policy: LifecyclePolicy, field: str) -> FieldError | None:
    has_event, has_code = bool(policy.event or policy.events), policy.exit_code is not None
    if has_event and has_code:
        return sentence(field, "must not specify event and exitCode simultaneously")
    if not has_event and not has_code:
        return sentence(field, "either event and exitCode should be specified")
    return None


def _event_fault(policy: LifecyclePolicy, field: str, seen: set[str]) -> FieldError | None:
    named = dict.fromkeys([*policy.events, policy.event] if policy.event else policy.events)
    for event in named:
        if event not in EVENTS:
            return invalid(field, event, "invalid policy event")
        if policy.action not in ACTIONS:
            return invalid(field, policy.action, "invalid policy action")
        if event in seen:
            return sentence(field, f"duplicate event {event}  across different policy", duplicate(field, event).reason)
        seen.add(event)
    return None


def _code_fault(policy: LifecyclePolicy, field: str, seen: set[int]) -> FieldError | None:
    code = policy.exit_code
    if code is None:
        return None
    if code == 0:
        return sentence(field, "0 is not a valid error code")
    if code in seen:
        return sentence(field, f"duplicate exitCode {code}", duplicate(field, code).reason)
    seen.add(code)
    return None
