"""Lifecycle policies of jobs and tasks: which events and actions users may name, and how (spec 07 section 8.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from stromboli.webhooks.errors import FieldError, duplicate, invalid, sentence, unsaid
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
_NOT_ALONE: Final = "if there's * here, no other policy should be here"
_ALLOWED: Final = f" valid events are [{' '.join(EVENTS)}], valid actions are [{' '.join(ACTIONS)}];"


def policy_faults(policies: Sequence[LifecyclePolicy], field: str, place: str | None = None) -> Iterator[FieldError]:
    """One error whose text is for the whole list, and causes for further faults; none for good policies.

    ``field`` is the path that stands in the text, ``place`` the exact one where it differs (texts of task policies do
    not carry the task's index).
    """
    events: set[str] = set()
    bad = _bad_policies(policies, field, place or field, events)
    # The text is about the first bad policy, and about the events that came before it.
    faults = list(islice(bad, 1))
    if ANY_EVENT in events and len(events) > 1:
        faults.append(replace(sentence(field, _NOT_ALONE), place=place or field))
    if faults:
        yield replace(faults[0], sentence=_block(faults))
        yield from unsaid(faults[1:])
        yield from unsaid(bad)


def _block(faults: Sequence[FieldError]) -> str:
    count = "1 error" if len(faults) == 1 else f"{len(faults)} errors"
    lines = "".join(f"\t* {fault.text}\n" for fault in faults)
    return f"{count} occurred:\n{lines}\n{_ALLOWED}"


def _bad_policies(
    policies: Sequence[LifecyclePolicy], field: str, place: str, events: set[str]
) -> Iterator[FieldError]:
    """The fault of each bad policy; ``events`` gathers those seen so far."""
    exit_codes: set[int] = set()
    for index, policy in enumerate(policies):
        fault = (
            _form_fault(policy, field) or _event_fault(policy, field, events) or _code_fault(policy, field, exit_codes)
        )
        if fault:
            yield replace(fault, place=f"{place}[{index}]")


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
