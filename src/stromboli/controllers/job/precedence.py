"""Lifecycle policies that never act, because another comes first or because what they wait for does not happen.

Of the policies of a pod's task and then of the job the first that matches decides (spec 02 section 7), so one may stand
where nothing ever reaches it. That is no error and the job runs, but it does not do what its owner has written down:
the owner is told what wins and why. Admission refuses some of this and lets the rest in. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stromboli.api.batch import Job, LifecyclePolicy, TaskSpec
from stromboli.api.phases import JobAction as Action
from stromboli.api.phases import JobEvent as Happening
from stromboli.controllers.job.phases import Scope, action_of, scope

WITHOUT_EFFECT = "PolicyWithoutEffect"
_ORDER = "the first that matches decides, the task's policies before the job's"
_NEVER_RAISED = {
    Happening.JOB_UPDATED: "nothing ever raises it",
    Happening.POD_RUNNING: "no policy is asked about it",
    Happening.OUT_OF_SYNC: "no policy is asked about it",
    Happening.COMMAND_ISSUED: "no policy is asked about it",
}
_TARGETED = frozenset({Scope.TASK, Scope.POD, Scope.PARTITION})


class _Trigger(NamedTuple):
    """What a policy waits for: an event, or the failure of a pod with one exit code."""

    event: str
    code: int = 0

    def __str__(self) -> str:
        return f"exit code {self.code}" if self.code else ("any event" if self.event == Happening.ANY else self.event)


class _Place(NamedTuple):
    """A policy, and where it stands."""

    field: str
    policy: LifecyclePolicy

    @property
    def triggers(self) -> list[_Trigger]:
        code = self.policy.exit_code
        return [*map(_Trigger, self.policy.triggers()), *([_Trigger(Happening.POD_FAILED, code)] if code else [])]

    def covers(self, trigger: _Trigger, other: LifecyclePolicy) -> bool:
        """Whether this one matches whatever would bring ``trigger`` to the ``other``."""
        if trigger.code and self.policy.exit_code == trigger.code:
            return True
        events, waits = self.policy.triggers(), self.policy.timeout is not None
        if trigger.event == Happening.POD_PENDING and not waits:
            return False
        if trigger.event == Happening.ANY and not waits and other.timeout is not None:
            return False  # pods that stay pending are left to the other
        return trigger.event in events or Happening.ANY in events

    def does_the_same(self, other: LifecyclePolicy) -> bool:
        return (self.policy.action, self.policy.timeout) == (other.action, other.timeout)


def notes(job: Job) -> Iterator[str]:
    """One sentence for each policy that does not act as it stands, with the field, the reason and what to do."""
    for position, task in enumerate(job.spec.tasks):
        places = _places(f"spec.tasks[{position}].policies", task.policies)
        yield from _of_list(places, of_task=True)
        yield from _aimless(places, [task])
    places = _places("spec.policies", job.spec.policies)
    yield from _of_list(places, of_task=False)
    yield from _aimless(places, job.spec.tasks)
    yield from _overruled_by_every_task(job, places)


def _places(field: str, policies: Sequence[LifecyclePolicy]) -> list[_Place]:
    return [_Place(f"{field}[{position}]", policy) for position, policy in enumerate(policies)]


def _of_list(places: Sequence[_Place], *, of_task: bool) -> Iterator[str]:
    for position, place in enumerate(places):
        if not place.triggers:
            yield f"{place.field}: it names no event and no exit code, so it never acts: name one, or take it out"
        for trigger in place.triggers:
            if why := _never(trigger, place.policy, of_task=of_task):
                yield f"{place.field}: {trigger} never leads to {place.policy.action}: {why}"
        yield from _either(place)
        yield from _overruled(place, places[:position])


def _never(trigger: _Trigger, policy: LifecyclePolicy, *, of_task: bool) -> str:
    """Why a trigger never comes to a policy, whatever the others say; empty when it may."""
    if trigger.event in _NEVER_RAISED:
        return f"{_NEVER_RAISED[Happening(trigger.event)]}; name another event"
    if trigger.event == Happening.POD_PENDING and policy.timeout is None:
        return "every pod is pending for a moment, so only staying pending counts; give the policy a timeout"
    if trigger.event == Happening.JOB_UNKNOWN and of_task:
        return "it is about the PodGroup and not about a task; put the policy into spec.policies"
    return ""


def _either(place: _Place) -> Iterator[str]:
    """Event and exit code in one policy are alternatives."""
    code = place.policy.exit_code
    if code and {Happening.POD_FAILED, Happening.ANY} & set(place.policy.triggers()):
        yield (
            f"{place.field}: exitCode {code} narrows nothing, since either of event and exitCode is enough and the "
            "event comes with every failed pod: leave out the event to act on that code alone"
        )


def _overruled(place: _Place, earlier: Sequence[_Place]) -> Iterator[str]:
    for trigger in place.triggers:
        winner = next((one for one in earlier if one.covers(trigger, place.policy)), None)
        if winner is None or winner.does_the_same(place.policy) or _own(trigger, place.policy):
            continue
        yield (
            f"{place.field}: {trigger} never leads to {place.policy.action}, because {winner.field} "
            f"({winner.policy.action}) comes first; {_ORDER}: put the one that is to win first, or take the other out"
        )


def _own(trigger: _Trigger, policy: LifecyclePolicy) -> bool:
    """Whether a code is told of already with the event of the same policy."""
    return bool(trigger.code) and bool({Happening.POD_FAILED, Happening.ANY} & set(policy.triggers()))


def _overruled_by_every_task(job: Job, places: Sequence[_Place]) -> Iterator[str]:
    """What only happens to pods and tasks never gets to a policy of the job if every task has one of its own for it."""
    for place in places:
        for trigger in place.triggers:
            if trigger.event in (Happening.ANY, Happening.JOB_UNKNOWN):
                continue
            winners = [_first_of(position, task, trigger, place) for position, task in enumerate(job.spec.tasks)]
            found = [one for one in winners if one is not None]
            if not winners or len(found) < len(winners) or all(one.does_the_same(place.policy) for one in found):
                continue
            yield (
                f"{place.field}: {trigger} never leads to {place.policy.action}, because every task has a policy of "
                f"its own for it, the first {found[0].field} ({found[0].policy.action}); {_ORDER}: take out those of "
                "the tasks, or this one"
            )


def _first_of(position: int, task: TaskSpec, trigger: _Trigger, place: _Place) -> _Place | None:
    own = _places(f"spec.tasks[{position}].policies", task.policies)
    return next((one for one in own if one.covers(trigger, place.policy)), None)


def _aimless(places: Sequence[_Place], tasks: Sequence[TaskSpec]) -> Iterator[str]:
    """Actions on a part of the job that no event names."""
    for place in places:
        action = action_of(place.policy.action)
        if action is Action.RESTART_PARTITION and not any(task.partition_policy for task in tasks):
            yield f"{place.field}: {action} restarts nothing, there are no partitions: use RestartTask or RestartPod"
        elif scope(action) in _TARGETED and Happening.JOB_UNKNOWN in place.policy.triggers():
            yield f"{place.field}: Unknown is about no single pod, so {action} restarts nothing then: use RestartJob"
