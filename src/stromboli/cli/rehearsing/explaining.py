"""Why a job waits: what the cluster has written down about it, and what a cycle of the scheduler would meet now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from stromboli.api import core
from stromboli.api.complaints import complaint, names_cause
from stromboli.api.phases import JobEvent
from stromboli.api.reasons import NEXT_STEPS, WaitReason, bounded
from stromboli.cli.counting import counted, verb
from stromboli.cli.rehearsing import causes, ladder, members, queueing
from stromboli.cli.rehearsing.causes import Cause
from stromboli.cli.rehearsing.emptying import (
    HOPELESS,
    HOPELESS_REST,
    NOTHING_TAKEN,
    placed_alone,
    starts_alone,
    with_waiting,
    without_waiting,
)
from stromboli.cli.rehearsing.evicting import eviction_rung
from stromboli.cli.rehearsing.facts import BIND_FAILURES, Facts, Trial, alone
from stromboli.cli.rehearsing.holders import holders_rung
from stromboli.cli.rehearsing.rungs import Rung
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.records import Job

OVER = ("Completed", "Failed", "Aborted", "Terminated")
SUSPENDED = ("Aborting", "Aborted")
LATEST_FAILURES = 3
AS_STATUS_SAYS = "mend what the status says; the job goes on by itself then"
BY_COMMAND = f"because of {JobEvent.COMMAND_ISSUED}"
"""How the status of a job ends that somebody has suspended."""
ABOUT_ROOM = (
    WaitReason.CLUSTER_OVERCOMMITTED,
    WaitReason.QUEUE_QUOTA_INSUFFICIENT,
    WaitReason.QUEUE_EXHAUSTED,
    WaitReason.GANG_INCOMPLETE,
    WaitReason.NODES_REFUSE,
)
"""Reasons with which it matters whether others are in the way, who may end."""
NO_CAUSE = (WaitReason.ABOUT_TO_START, WaitReason.NOT_ADMITTED_YET)
"""Reasons that say that nothing was found."""


@dataclass(frozen=True)
class Explanation:
    """A sentence, the reason in one word (empty when the job does not wait), the ladder and the next step."""

    job: str
    sentence: str
    reason: str = ""
    rungs: tuple[Rung, ...] = ()
    next_step: str = ""

    def to_wire(self) -> JsonObject:
        """For ``-o json|yaml``."""
        return {
            "job": self.job,
            "sentence": self.sentence,
            "reason": str(self.reason),
            "nextStep": self.next_step,
            "ladder": [{"title": rung.title, "lines": list(rung.lines)} for rung in self.rungs],
        }


def explain(facts: Facts) -> Explanation:
    """Explain the state of a job."""
    at_rest = _at_rest(facts.job)
    if at_rest is not None:
        return at_rest
    if facts.group is None:
        return _without_group(facts)
    queue = facts.group.spec.queue or "default"
    if queue not in {found.name for found in facts.snapshot.of(core.Queue)}:
        return _waits(facts.key, WaitReason.QUEUE_MISSING, f"its queue {queue} does not exist", ())
    return _asked(facts, Trial.of(facts))


def _at_rest(job: JsonObject) -> Explanation | None:
    """What is said of a job that nothing is to be scheduled for: it is suspended or over."""
    key, phase, word = "/".join(json.key_of(job)), members.phase_of(job), members.word_of_status(job)
    if phase in SUSPENDED:
        return _suspended(key, phase, word)
    if phase in OVER:
        told = f"; its status says: {word}" if word else ""
        return Explanation(key, bounded(f"{key} is {phase}: it waits for nothing{told}."))
    return None


def _suspended(key: str, phase: str, word: str) -> Explanation:
    """A command is somebody's wish; what a policy of the job has done has a cause to be mended first."""
    again = "starts again when it is resumed"
    if not word or word.endswith(BY_COMMAND):
        return _waits(key, WaitReason.SUSPENDED, f"it is {phase}, and {again}", ())
    return _waits(key, WaitReason.ABORTED, f"it is {phase} ({word}), and {again}", ())


def _without_group(facts: Facts) -> Explanation:
    because, word = "its PodGroup has not been made yet", facts.word_of_status
    if not word:
        return _waits(facts.key, WaitReason.POD_GROUP_MISSING, because, ())
    told = _waits(facts.key, WaitReason.POD_GROUP_MISSING, f"{because}; the job's status says: {word}", ())
    return replace(told, next_step=AS_STATUS_SAYS) if facts.phase == "Pending" else told


def _asked(facts: Facts, trial: Trial) -> Explanation:
    job, fitting = trial.job, trial.fitting
    rungs, topology_is_enough = _rungs(trial)
    if job.is_ready and not fitting:
        held_back = causes.held_back(facts)
        told = f"{facts.key} runs: {_running(job)}{f'; {held_back}' if held_back else ''}."
        return Explanation(facts.key, told, rungs=rungs)
    found = causes.cause_of(trial, topology_is_enough=topology_is_enough)
    if job.is_ready:
        waiting = sum(fit.waiting for fit in fitting)
        told = (
            f"{facts.key} runs: {_running(job)}; {waiting} more {verb(waiting, 'wait')}: {found.because.rstrip('.')}."
        )
        return Explanation(facts.key, bounded(told), found.reason, rungs, _step_for_the_rest(trial, found.reason))
    cause, step = _lasting(trial, found)
    return replace(_waits(facts.key, cause.reason, cause.because, rungs), next_step=step)


def _lasting(trial: Trial, found: Cause) -> tuple[Cause, str]:
    """The cause to tell, and what to do. Waiting is no advice for a job that would not start in the empty cluster
    either: of such a job the cause is told that holds there, for the others may pass.
    """
    step, facts = _step_for(trial, found.reason), trial.facts
    if found.reason not in ABOUT_ROOM:
        return found, step
    if starts_alone(facts.snapshot, facts.policy, facts.job, facts.plugins):
        return found, with_waiting(step)
    empty = Trial.of(alone(facts))
    _, topology_is_enough = _rungs(empty)
    there = causes.cause_of(empty, topology_is_enough=topology_is_enough)
    if there.reason in (found.reason, *NO_CAUSE):
        return found, without_waiting(step) + HOPELESS
    because = NOTHING_TAKEN.sub("", there.because)
    told = Cause(there.reason, f"even in the empty cluster, {because}")
    return told, without_waiting(_step_for(empty, there.reason)) + HOPELESS


def _step_for_the_rest(trial: Trial, reason: WaitReason) -> str:
    """What to do for more pods of a job that runs already."""
    step, facts = _step_for(trial, reason), trial.facts
    if reason not in ABOUT_ROOM:
        return step
    if placed_alone(facts.snapshot, facts.policy, facts.job, facts.plugins) > trial.job.ready_count:
        return with_waiting(step)
    return without_waiting(step) + HOPELESS_REST


def _step_for(trial: Trial, reason: WaitReason) -> str:
    """Where no queue's capability is to blame, raising one does not help."""
    if reason is WaitReason.QUEUE_QUOTA_INSUFFICIENT and not queueing.owner_of_limit(trial.cycle, trial.job):
        return NEXT_STEPS[WaitReason.CLUSTER_OVERCOMMITTED]
    return NEXT_STEPS[reason]


def from_conditions(job: JsonObject, group: JsonObject | None) -> Explanation:
    """What the objects say by themselves, for those who may not look at the cluster."""
    key = "/".join(json.key_of(job))
    phase = members.phase_of(job)
    at_rest = _at_rest(job)
    if at_rest is not None:
        return at_rest
    told = complaint(core.from_builtins(core.PodGroup, group).status.conditions) if group else None
    if told is None:
        word = members.word_of_status(job)
        said = f": {word}" if word else ", and nothing is written down about why"
        return Explanation(key, bounded(f"{key} is {phase}{said}."))
    if not names_cause(told):
        return Explanation(key, bounded(f"{key} waits: {told.message.rstrip('.')}."), told.reason)
    because = causes.uncapitalised(causes.without_advice(told.message, told.reason))
    step = causes.step_told(told.message, told.reason)
    return Explanation(key, bounded(f"{key} waits: {because}."), told.reason, (), step)


def _waits(key: str, reason: WaitReason, because: str, rungs: Iterable[Rung]) -> Explanation:
    sentence = bounded(f"{key} waits: {because.rstrip('.')}.")
    return Explanation(key, sentence, reason, tuple(rungs), NEXT_STEPS[reason])


def _running(job: Job) -> str:
    return f"{job.ready_count} of {counted(len(job.tasks), 'pod')} {verb(job.ready_count, 'have')} a node"


def _rungs(trial: Trial) -> tuple[tuple[Rung, ...], bool]:
    cycle, job, fitting = trial.cycle, trial.job, trial.fitting
    queue = queueing.queue_rung(cycle, job, trial.samples)
    said = trial.word_of_queue
    rungs = [
        Rung(queue.title, (*queue.lines, *([said] if said else []))),
        ladder.gang_rung(job),
        ladder.nodes_rung(cycle, fitting),
    ]
    enough = True
    if ladder.is_confined(job):
        rung, enough = ladder.topology_rung(cycle, job, fitting)
        rungs.append(rung)
    if fitting or job.is_pending:
        rungs.append(holders_rung(cycle, job))
    rungs.append(eviction_rung(cycle, job, fitting))
    hold = causes.word_of_the_hold(trial.facts)
    failures = [*trial.facts.told(*BIND_FAILURES)[-LATEST_FAILURES:], *([hold] if hold else [])]
    if failures:
        rungs.append(Rung("Binding", tuple(failures)))
    return tuple(rungs), enough
