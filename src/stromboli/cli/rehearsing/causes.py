"""What a job waits for, as one reason and one sentence. The cause wins over its consequence.

First admission, then the pods themselves, then nodes, and last what only the scheduler's whole cycle knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stromboli.api import core
from stromboli.api.complaints import names_cause
from stromboli.api.reasons import IN_VAIN, NEXT_STEPS, WaitReason
from stromboli.cli.counting import counted, verb
from stromboli.cli.rehearsing import ladder, queueing
from stromboli.cli.rehearsing.facts import BIND_FAILURES, Facts, Trial
from stromboli.cli.rehearsing.ladder import RoleFit
from stromboli.cli.rehearsing.rungs import request_of
from stromboli.scheduler.core.records import Job
from stromboli.scheduler.core.statuses import TaskStatus


@dataclass(frozen=True)
class Cause:
    """Why a job waits; ``because`` is what stands after ``waits:``."""

    reason: WaitReason
    because: str


def cause_of(trial: Trial, *, topology_is_enough: bool) -> Cause:
    """What the job waits for, the first of these that holds."""
    return next(_causes(trial, topology_is_enough))


def _causes(trial: Trial, topology_is_enough: bool) -> Iterator[Cause]:
    yield from _admission(trial)
    yield from _strangers(trial)
    yield from _missing_pods(trial)
    yield from _gates(trial)
    yield from _nodes(trial)
    yield from _dependencies(trial)
    yield from _topology(trial, topology_is_enough)
    yield from _room(trial)
    yield from _verdict_of_the_cycle(trial)
    yield _nothing(trial)


# -- admission ---------------------------------------------------------------------------------------------------------


def _admission(trial: Trial) -> Iterator[Cause]:
    refusal = _refusal(trial)
    if trial.job.is_pending and refusal is not None:
        yield Cause(word(refusal.reason), _told(trial, refusal))


def _refusal(trial: Trial) -> core.PodGroupCondition | None:
    """Why the group is not admitted: what a cycle would write, else what the scheduler has written."""
    written = trial.facts.group.status.conditions if trial.facts.group else ()
    found = next((item for item in written if item.type == "Admitted"), None)
    now = trial.after.condition(trial.facts.group_key, "Admitted")
    return next((item for item in (now, found) if item and item.status == "False"), None)


def _told(trial: Trial, refusal: core.PodGroupCondition) -> str:
    """What the scheduler wrote, without the advice, and whose limit it is if not the queue's own."""
    because = uncapitalised(without_advice(refusal.message, refusal.reason))
    if refusal.reason == WaitReason.QUEUE_QUOTA_INSUFFICIENT:
        owner = queueing.owner_of_limit(trial.cycle, trial.job)
        if not owner:
            because += "; no capability says so: it is what the cluster has, less what other queues are guaranteed"
        elif f"queue {owner} " not in because:
            because += f"; the limit is that of queue {owner} above it"
    return because


def uncapitalised(sentence: str) -> str:
    """The sentence as it stands after a colon."""
    return sentence[:1].lower() + sentence[1:]


def without_advice(message: str, reason: str) -> str:
    """The scheduler's message without the next step at its end, which is told apart."""
    step = NEXT_STEPS[word(reason)]
    told = message.rstrip(".")
    if told.endswith(step):  # what others have said may have full stops in it
        return told.removesuffix(step).rstrip("; ")
    told, _, _ = told.partition(". ")
    return told.rstrip("; ")


def step_told(message: str, reason: str) -> str:
    """The next step of a written reason; where waiting does not help, the one that the message ends with says so."""
    told = message.rstrip(".")
    if told.endswith(IN_VAIN):
        return uncapitalised(told.rpartition(". ")[2])
    return NEXT_STEPS[word(reason)]


def word(reason: str) -> WaitReason:
    """The reason with that name; one of an unknown name stands for a group that nobody has looked at."""
    try:
        return WaitReason(reason)
    except ValueError:
        return WaitReason.NOT_ADMITTED_YET


# -- pods --------------------------------------------------------------------------------------------------------------


def _strangers(trial: Trial) -> Iterator[Cause]:
    """Pods that exist but are for another scheduler."""
    if not trial.job.tasks and trial.facts.pods:
        named = ", ".join(sorted({pod.spec.scheduler_name for pod in trial.facts.pods}))
        yield Cause(WaitReason.OTHER_SCHEDULER, f"its pods are for scheduler {named}, which is not asked here")


def _missing_pods(trial: Trial) -> Iterator[Cause]:
    job = trial.job
    if len(job.tasks) >= job.min_member or trial.facts.held_back:
        return
    refused = trial.facts.refused_pods
    if refused:
        yield Cause(WaitReason.PODS_REFUSED, f"{_too_few(job)}: {refused}")
    yield Cause(WaitReason.PODS_MISSING, _too_few(job))


def _dependencies(trial: Trial) -> Iterator[Cause]:
    """Tasks that wait for others, where the gang counts them."""
    job = trial.job
    if len(job.tasks) < job.min_member and trial.facts.held_back:
        yield Cause(WaitReason.TASK_DEPENDENCY, f"{_too_few(job)}: {held_back(trial.facts)}")


def _too_few(job: Job) -> str:
    exist = f"of which {len(job.tasks)} {verb(len(job.tasks), 'exist')}"
    return f"it needs {counted(job.min_member, 'pod')} at once, {exist}"


def held_back(facts: Facts) -> str:
    """``task b waits for task a (dependsOn)``; empty when no task does."""
    return "; ".join(
        f"task {task} waits for task{'s' * (len(others) > 1)} {', '.join(others)} (dependsOn)"
        for task, others in facts.held_back.items()
    )


def _gates(trial: Trial) -> Iterator[Cause]:
    job = trial.job
    gated = sum(task.gated for task in job.tasks.values())
    if gated and gated > len(job.tasks) - job.min_member:
        told = f"{gated} of its {counted(len(job.tasks), 'pod')} {verb(gated, 'have')} scheduling gates"
        yield Cause(WaitReason.PODS_GATED, told)


# -- nodes -------------------------------------------------------------------------------------------------------------


def _nodes(trial: Trial) -> Iterator[Cause]:
    hopeless = next((fit for fit in trial.fitting if not fit.room), None)
    if hopeless is None:
        return
    role = f" of role {hopeless.role}" if hopeless.role else ""
    if hopeless.problem:
        what = hopeless.problem.partition(" pre-predicates failed ")[2] or hopeless.problem
        yield Cause(WaitReason.CLAIMS_NOT_READY, f"no node is tried for a pod{role}: {what}")
    else:
        yield Cause(WaitReason.NODES_REFUSE, f"no node takes a pod{role}: {hopeless.text}{_nearest(trial, hopeless)}")


def _nearest(trial: Trial, fit: RoleFit) -> str:
    return next((f"; {node} comes nearest and lacks {what}" for node, what in ladder.near_misses(trial.cycle, fit)), "")


def _topology(trial: Trial, enough: bool) -> Iterator[Cause]:
    if not enough:
        rung, _ = ladder.topology_rung(trial.cycle, trial.job, trial.fitting)
        told = f"no HyperNode that it may use has room for the gang: {rung.lines[-1]}"
        yield Cause(WaitReason.TOPOLOGY_TOO_SMALL, told)


def _room(trial: Trial) -> Iterator[Cause]:
    """Room by amounts, counted node by node."""
    job, fitting = trial.job, trial.fitting
    missing = max(job.min_member - job.ready_count, 0)
    room = sum(min(fit.room, fit.waiting) for fit in fitting)
    if room < missing or (job.is_ready and room < job.counts[TaskStatus.PENDING]):
        asked = "; ".join(f"{fit.role or 'each'} {request_of(trial.cycle, fit.task)}" for fit in fitting)
        told = f"there is room for {room} of the {counted(missing, 'pod')} that it lacks ({asked})"
        yield Cause(WaitReason.GANG_INCOMPLETE, told)


# -- the rest ----------------------------------------------------------------------------------------------------------


def _verdict_of_the_cycle(trial: Trial) -> Iterator[Cause]:
    """Every pod by itself has a node: what speaks against all of them together."""
    if trial.word_of_queue:
        yield Cause(WaitReason.QUEUE_EXHAUSTED, trial.word_of_queue)
    pod, why = trial.refused_pod
    if pod:
        missing = max(trial.job.min_member - trial.job.ready_count, 0) or trial.job.counts[TaskStatus.PENDING]
        found = trial.placeable()
        told = f"{found} of the {counted(missing, 'pod')} that it lacks {verb(found, 'find')} a node; then {pod}: {why}"
        yield Cause(WaitReason.GANG_INCOMPLETE, told)
    failures, hold = trial.facts.told(*BIND_FAILURES), word_of_the_hold(trial.facts)
    if failures or hold:
        yield Cause(WaitReason.BINDING_REFUSED, failures[-1] if failures else hold)


def word_of_the_hold(facts: Facts) -> str:
    """What the scheduler has written about binds that were refused and when it tries again; empty when nothing."""
    written = facts.group.status.conditions if facts.group else ()
    found = next((one for one in written if names_cause(one) and one.reason == WaitReason.BINDING_REFUSED), None)
    return without_advice(found.message, found.reason) if found else ""


def _nothing(trial: Trial) -> Cause:
    if trial.job.is_pending:
        return Cause(WaitReason.NOT_ADMITTED_YET, "no scheduling cycle has looked at it yet")
    return Cause(WaitReason.ABOUT_TO_START, "there is room for it; its pods are being placed")
