"""Lifecycle policies: which action an occurrence in a job's life leads to, and after what delay (spec 02 section 7).

An :class:`Occurrence` is a fact about one pod, one task or the whole job, with the identity it happened to.
:func:`resolve` is a pure function of the job's policies and that fact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stromboli.api import durations
from stromboli.api.batch import Job, LifecyclePolicy
from stromboli.api.phases import JobAction as Action
from stromboli.api.phases import JobEvent as Happening
from stromboli.controllers.job import phases, pods
from stromboli.controllers.job.phases import Scope, scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """Something that happened to a job. Empty texts mean that the fact concerns no task, pod or partition."""

    event: str
    job_uid: str = ""
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""
    exit_code: int = 0
    version: int | None = None
    """``job-version`` of the pod; None for facts that are not about a pod, which no version outdates."""
    action: str | None = None
    """Set by a Command: what to do, whatever the policies say."""
    message: str = ""
    """Why, for the job's status, when the event does not say it all."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The action an occurrence leads to. ``delay`` is in seconds; 0 is at once. ``spelled`` is the action as given."""

    action: Action
    spelled: str
    delay: float = 0.0


SYNC = Resolution(Action.SYNC_JOB, Action.SYNC_JOB.value)
_NEVER_POLICED = frozenset({Happening.OUT_OF_SYNC, Happening.COMMAND_ISSUED, Happening.POD_RUNNING})


def resolve(job: Job, occurrence: Occurrence) -> Resolution:
    """The first hit of spec 02 section 7.1: command, stale identity, task policies, job policies, plain sync."""
    if occurrence.job_uid and occurrence.job_uid != job.uid:
        return SYNC
    if occurrence.action is not None:
        return Resolution(phases.action_of(occurrence.action), occurrence.action)
    if occurrence.event in _NEVER_POLICED or _outdated(job, occurrence):
        return SYNC
    for policy in (*_task_policies(job, occurrence.task), *(job.spec.policies)):
        if _matches(policy, occurrence):
            spelled = policy.action or Action.SYNC_JOB.value
            return Resolution(phases.action_of(spelled), spelled, _delay(policy))
    return SYNC


def _outdated(job: Job, occurrence: Occurrence) -> bool:
    return occurrence.version is not None and occurrence.version < job.status.version


def _task_policies(job: Job, task: str) -> Iterable[LifecyclePolicy]:
    if not task:
        return ()
    return next((one.policies for one in job.spec.tasks if pods.task_name(one) == task), ())


def _matches(policy: LifecyclePolicy, occurrence: Occurrence) -> bool:
    triggers = policy.triggers()
    named = bool(occurrence.event) and (occurrence.event in triggers or Happening.ANY in triggers)
    # A pod is pending for a moment in every life; only staying pending for long is worth a reaction.
    passing = occurrence.event == Happening.POD_PENDING and policy.timeout is None
    if named and not passing:
        return True
    # Everything that is no failure has code 0; a policy for that code, which admission refuses, is one for nothing.
    return bool(policy.exit_code) and policy.exit_code == occurrence.exit_code


def check(job: Job) -> None:
    """Refuse policies that cannot be acted upon.

    Raises:
        ValueError: a timeout is no duration; the text names the field.
    """
    _check_list(job.spec.policies, "spec.policies")
    for position, task in enumerate(job.spec.tasks):
        _check_list(task.policies, f"spec.tasks[{position}].policies")


def _check_list(policies: Iterable[LifecyclePolicy], field: str) -> None:
    for position, policy in enumerate(policies):
        try:
            _delay(policy)
        except durations.BadDuration as error:
            raise ValueError(f"{field}[{position}].timeout: {error}") from error


def _delay(policy: LifecyclePolicy) -> float:
    return durations.seconds(policy.timeout) if policy.timeout else 0.0


@dataclass(frozen=True, slots=True)
class Target:
    """What an action is aimed at; empty members mean the whole job."""

    scope: Scope
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""

    @property
    def known(self) -> bool:
        """Whether a targeted action knows its target. One that does not (a Command) has nothing to restart."""
        required = {
            Scope.TASK: (self.task,),
            Scope.POD: (self.pod,),
            Scope.PARTITION: (self.task, self.partition),
        }
        return all(required.get(self.scope, ()))


def target(action: Action, occurrence: Occurrence) -> Target:
    """The target of ``action`` when ``occurrence`` led to it."""
    aimed = scope(action)
    if aimed is Scope.TASK:
        return Target(aimed, task=occurrence.task)
    if aimed is Scope.POD:
        return Target(aimed, task=occurrence.task, pod=occurrence.pod, pod_uid=occurrence.pod_uid)
    if aimed is Scope.PARTITION:
        return Target(aimed, task=occurrence.task, partition=occurrence.partition)
    return Target(aimed)
