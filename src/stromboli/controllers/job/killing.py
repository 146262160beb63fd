"""Killing: the whole job or a part of it (spec 02 section 10).

Counting covers every pod, the spared ones too. The job's version goes up when a kill begins or finds victims, and never
for looking again at a job that lies still.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stromboli.api.phases import JobAction as Action
from stromboli.api.phases import JobPhase as Phase
from stromboli.controllers.job import phases, pods, restarts, status, successes
from stromboli.controllers.job.counting import Count
from stromboli.controllers.job.deciding import Decision
from stromboli.controllers.job.members import Member
from stromboli.controllers.job.observed import Observed
from stromboli.controllers.job.operations import DeletePodGroup, DropAttachment, Operation, RemovePods, WriteStatus
from stromboli.controllers.job.phases import SOFT, Rule, Scope, Step
from stromboli.controllers.job.plugins import Attachment, marker
from stromboli.controllers.job.policies import Target

_TARGETED = frozenset({Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION})
_BEGINNINGS = frozenset({Rule.TO_RESTARTING, Rule.TO_ABORTING, Rule.TO_COMPLETING, Rule.TO_TERMINATING})
_GOES_ON = _BEGINNINGS - {Rule.TO_RESTARTING}
"""Beginnings of kills that every later pass continues."""


def kill_job(view: Observed, step: Step, decision: Decision, now: float) -> list[Operation]:
    """Kill every pod that the step does not spare, and take away PodGroup and plugin objects.

    A kill that goes on until no pod is left is written down before anything is taken away: its cause may be a Command,
    which is on no other record. A restart takes away first, because nothing would do that after it.
    """
    spared = _spares(view, step)
    victims = tuple(one for one in view.members if not one.terminating and one.phase not in spared)
    kept = remembered_successes(view) if spared == SOFT else {}
    draft = _draft(view, count(view.members, victims, kept), step, decision)
    draft.version += 1 if step.rule in _BEGINNINGS or victims else 0
    restarts.forget(draft.controlled)
    successes.record(draft.controlled, kept)
    draft.phase = phases.next_phase(_phase(view), step.rule, status.tally(view.job, draft))
    removed: list[Operation] = [DropAttachment(one) for one in _attachments(view)]
    if view.group is not None:
        removed.append(DeletePodGroup(view.group.name, view.group.uid))
    killed: list[Operation] = [RemovePods(victims)] if victims else []
    begun = WriteStatus(status.compose(view.job, draft, now))
    draft.controlled = _without_markers(view, draft.controlled)
    ended = WriteStatus(status.compose(view.job, draft, now))
    if step.rule not in _GOES_ON:
        return [*removed, ended, *killed]
    return [begun, *removed, *killed, *([ended] if ended != begun else [])]


def kill_target(view: Observed, step: Step, decision: Decision, now: float) -> list[Operation]:
    """Kill the pods of one task, partition or replica. PodGroup, version and plugin objects stay as they are."""
    aimed = [one for one in view.members if _aimed_at(decision.target, one)]
    victims = tuple(one for one in aimed if not one.terminating)
    kept = _forget(view, decision.target, remembered_successes(view))
    draft = _draft(view, count(view.members, victims, kept), step, decision)
    successes.record(draft.controlled, kept)
    if step.rule in _BEGINNINGS:
        restarts.record(draft.controlled, decision.target)
    draft.phase = phases.next_phase(_phase(view), step.rule, status.tally(view.job, draft))
    killed: list[Operation] = [RemovePods(victims)] if victims else []
    return [WriteStatus(status.compose(view.job, draft, now)), *killed]


def _draft(view: Observed, counted: Count, step: Step, decision: Decision) -> status.Draft:
    stored = view.job.status
    begins = step.rule in _BEGINNINGS
    return status.Draft(
        phase=_phase(view),
        count=counted,
        version=stored.version,
        retry_count=stored.retry_count + (1 if step.counts_retry else 0),
        min_available=stored.min_available or view.job.spec.min_available,
        controlled=dict(stored.controlled_resources),
        reason=decision.spelled if begins else stored.state.reason,
        message=_why(decision) if begins else stored.state.message,
    )


def _why(decision: Decision) -> str:
    cause = decision.cause
    if cause is None:
        return ""
    if cause.message:
        return cause.message
    subject = f" of pod {cause.pod}" if cause.pod else ""
    code = f" with exit code {cause.exit_code}" if cause.exit_code else ""
    return f"{decision.spelled} because of {cause.event}{subject}{code}"


def _phase(view: Observed) -> Phase:
    return phases.phase_of(view.job.status.state.phase)


def _spares(view: Observed, step: Step) -> frozenset[str]:
    """On the last retry finished pods are left for inspection (spec 02 section 9.3)."""
    last = view.job.status.retry_count >= status.max_retry(view.job) - 1
    return SOFT if last else step.spares


def count(members: Iterable[Member], victims: Iterable[Member], kept: Mapping[str, frozenset[int]]) -> Count:
    """Count members by phase, victims as terminating, and successes whose pods are gone as succeeded."""
    doomed, counted = {one.uid for one in victims}, Count()
    standing: set[tuple[str, int | None]] = set()
    for one in members:
        if one.terminating or one.uid in doomed:
            counted.add_terminating()
        else:
            counted.add(one.task, one.counts_as)
            standing.add((one.task, one.index))
    for task, indexes in kept.items():
        counted.add(task, "Succeeded", sum((task, index) not in standing for index in indexes))
    return counted


def remembered_successes(view: Observed, removed: Iterable[Member] = ()) -> dict[str, frozenset[int]]:
    """Replicas that have succeeded, by task: those on record and those whose pods show it now.

    What a pod shows that is about to be ``removed`` does not count: it is removed because it is to run again.
    """
    found = {}
    doomed = {one.uid for one in removed}
    for task in view.job.spec.tasks:
        name = pods.task_name(task)
        standing = (one for one in view.members if one.task == name and not one.marked and one.uid not in doomed)
        shown = {one.index for one in standing if one.phase == "Succeeded"}
        indexes = successes.of(view.job, name) | {index for index in shown if index is not None}
        found[name] = frozenset(index for index in indexes if index < task.replicas)
    return found


def _forget(view: Observed, aimed: Target, kept: dict[str, frozenset[int]]) -> dict[str, frozenset[int]]:
    """Successes that a targeted restart undoes are forgotten."""
    gone = kept.get(aimed.task, frozenset())
    if aimed.scope is Scope.POD:
        gone = frozenset(int(part) for part in [aimed.pod.rpartition("-")[2]] if part.isdecimal())
    if aimed.scope is Scope.PARTITION:
        task = next((one for one in view.job.spec.tasks if pods.task_name(one) == aimed.task), None)
        gone = frozenset(i for i in gone if task is not None and pods.partition_id(task, i) == aimed.partition)
    return {**kept, aimed.task: kept.get(aimed.task, frozenset()) - gone}


def _aimed_at(aimed: Target, member: Member) -> bool:
    match aimed.scope:
        case Scope.TASK:
            return member.task == aimed.task
        case Scope.POD:
            return member.name == aimed.pod and aimed.pod_uid in ("", member.uid)
        case Scope.PARTITION:
            return member.task == aimed.task and member.partition == aimed.partition
        case _:
            return False


def _without_markers(view: Observed, controlled: Mapping[str, str]) -> dict[str, str]:
    markers = {marker(plugin.name) for plugin in view.plugins}
    return {key: value for key, value in controlled.items() if key not in markers}


def _attachments(view: Observed) -> list[Attachment]:
    stored = view.job.status.controlled_resources or {}
    return [
        attachment
        for plugin in view.plugins
        if marker(plugin.name) in stored
        for attachment in plugin.attachments(view.job)
    ]


def unfinished(view: Observed) -> tuple[Member, ...]:
    """Pods that a restart was to kill and that are still there: the controller was interrupted."""
    stored = view.job.status
    if _phase(view) is not Phase.RESTARTING:
        return ()
    if stored.state.reason in _TARGETED:
        aimed = restarts.of(stored.controlled_resources)
        return () if aimed is None else tuple(one for one in view.members if _left_over(view, aimed, one))
    whole = stored.state.reason == Action.RESTART_JOB and stored.retry_count < status.max_retry(view.job)
    spared = phases.NONE if whole else SOFT
    return tuple(
        one for one in view.members if one.version < stored.version and not one.terminating and one.phase not in spared
    )


def _left_over(view: Observed, aimed: Target, member: Member) -> bool:
    """Whether a pod was meant by a targeted restart and is neither on its way out nor one of those that came after."""
    return not member.terminating and _aimed_at(aimed, member) and member.retry < view.job.status.retry_count
