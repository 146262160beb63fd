"""Why a job waits: what the cluster has written down about it, and what a cycle of the scheduler would meet now.

The cause wins over its consequence: a gang that is incomplete because its queue is full is told about the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from stromboli.api import core
from stromboli.api.reasons import NEXT_STEPS, WaitReason, bounded
from stromboli.cli.counting import counted, verb
from stromboli.cli.rehearsing import ladder, members
from stromboli.cli.rehearsing.engine import Rehearsal
from stromboli.cli.rehearsing.ladder import RoleFit, Rung
from stromboli.cli.rehearsing.snapshots import Snapshot
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.policy import Policy
from stromboli.scheduler.core.records import Job
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.view import Sample

OVER = ("Completed", "Failed", "Aborted", "Terminated")
BIND_FAILURE = "failed to bind"
LATEST_FAILURES = 3


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


@dataclass(frozen=True)
class Facts:
    """What is known of a job before the scheduler is asked."""

    job: JsonObject
    snapshot: Snapshot
    policy: Policy
    events: Sequence[JsonObject] = ()
    """Events about the job and its pods."""

    @property
    def key(self) -> str:
        """``namespace/name`` of the job."""
        return "/".join(json.key_of(self.job))

    @property
    def phase(self) -> str:
        """The job's phase."""
        return members.phase_of(self.job)

    @property
    def group_key(self) -> str:
        """``namespace/name`` of the job's PodGroup, as it is or will be."""
        namespace, name = json.key_of(self.job)
        known = {(group.namespace, group.name) for group in self.snapshot.of(core.PodGroup)}
        return f"{namespace}/{name if (namespace, name) in known else members.group_name(self.job)}"

    @property
    def group(self) -> core.PodGroup | None:
        """The job's PodGroup."""
        return next((group for group in self.snapshot.of(core.PodGroup) if "/".join(group.key) == self.group_key), None)


@dataclass(frozen=True)
class Trial:
    """The scheduler's core asked about a job: an open cycle for questions, and a whole one for what it would say."""

    cycle: Cycle
    job: Job
    fitting: Sequence[RoleFit]
    after: Rehearsal
    """The cluster after one cycle."""
    samples: Sequence[Sample]
    """What a cycle that does nothing measures."""

    @classmethod
    def of(cls, facts: Facts) -> Trial:
        """Ask about the job of the facts."""
        snapshot = _with_pods(facts)
        still = Rehearsal(snapshot, replace(facts.policy, actions=()))
        still.cycle()
        after = Rehearsal(snapshot, facts.policy)
        after.cycle()
        cycle = Rehearsal(snapshot, facts.policy).open()
        job = cycle.mirror.jobs[facts.group_key]
        return cls(cycle, job, ladder.fits(cycle, job), after, still.samples)


def explain(facts: Facts) -> Explanation:
    """Explain the state of a job."""
    if facts.phase in OVER:
        return Explanation(facts.key, f"{facts.key} is {facts.phase}: it waits for nothing.")
    if facts.group is None:
        return _waits(facts, WaitReason.POD_GROUP_MISSING, "its PodGroup has not been made yet", ())
    queue = facts.group.spec.queue or "default"
    if queue not in {found.name for found in facts.snapshot.of(core.Queue)}:
        return _waits(facts, WaitReason.QUEUE_MISSING, f"its queue {queue} does not exist", ())
    trial = Trial.of(facts)
    job, fitting = trial.job, trial.fitting
    rungs, topology_is_enough = _rungs(facts, trial)
    if job.is_ready and not fitting:
        return Explanation(facts.key, f"{facts.key} runs: {_running(job)}.", rungs=rungs)
    reason, because = _cause(facts, trial, topology_is_enough)
    if job.is_ready:
        waiting = sum(fit.waiting for fit in fitting)
        told = f"{facts.key} runs with {_running(job)}; {waiting} more {verb(waiting, 'wait')}: {because}."
        return Explanation(facts.key, told, reason, rungs, NEXT_STEPS[reason])
    step = _next_step(trial, reason)
    return replace(_waits(facts, reason, because, rungs), next_step=step)


def _next_step(trial: Trial, reason: WaitReason) -> str:
    """Where no queue's capability is to blame, raising one does not help."""
    if reason is WaitReason.QUEUE_QUOTA_INSUFFICIENT and not ladder.owner_of_limit(trial.cycle, trial.job):
        return NEXT_STEPS[WaitReason.CLUSTER_OVERCOMMITTED]
    return NEXT_STEPS[reason]


def from_conditions(job: JsonObject, group: JsonObject | None) -> Explanation:
    """What the objects say by themselves, for those who may not look at the cluster."""
    key = "/".join(json.key_of(job))
    phase = members.phase_of(job)
    told = [
        item
        for item in ((group or {}).get("status") or {}).get("conditions") or []
        if (item.get("type"), item.get("status")) in (("Admitted", "False"), ("Unschedulable", "True"))
    ]
    if not told:
        return Explanation(key, f"{key} is {phase}, and nothing is written down about why.")
    latest = max(told, key=lambda item: str(item.get("lastTransitionTime") or ""))
    step = NEXT_STEPS.get(_word(latest.get("reason") or ""), "") if latest.get("type") == "Admitted" else ""
    message = str(latest.get("message") or "").rstrip(".")
    return Explanation(key, bounded(f"{key} waits: {message}."), str(latest.get("reason") or ""), (), step)


def _waits(facts: Facts, reason: WaitReason, because: str, rungs: Iterable[Rung]) -> Explanation:
    sentence = bounded(f"{facts.key} waits: {because.rstrip('.')}.")
    return Explanation(facts.key, sentence, reason, tuple(rungs), NEXT_STEPS[reason])


def _with_pods(facts: Facts) -> Snapshot:
    """The snapshot with the pods that the job is going to have, so that nodes can be asked about them."""
    present = {pod.key for pod in facts.snapshot.of(core.Pod)}
    priorities = list(facts.snapshot.of(core.PriorityClass))
    coming = [pod for pod in members.pods(facts.job, priorities) if pod.key not in present]
    if facts.group is None or facts.group.status.phase not in ("", "Pending"):
        coming = []
    name = facts.group_key.partition("/")[2]
    named = [_in_group(pod, name) for pod in coming]
    return facts.snapshot.with_objects(*named)


def _in_group(pod: core.Pod, name: str) -> core.Pod:
    notes = {**pod.metadata.annotations, members.GROUP: name}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=notes))


def _running(job: Job) -> str:
    return f"{job.ready_count} of {counted(len(job.tasks), 'pod')} {verb(job.ready_count, 'have')} a node"


def _rungs(facts: Facts, trial: Trial) -> tuple[tuple[Rung, ...], bool]:
    cycle, job, fitting = trial.cycle, trial.job, trial.fitting
    queue = ladder.queue_rung(cycle, job, trial.samples)
    said = _word_of_queue(trial.after, facts.group_key)
    rungs = [
        Rung(queue.title, (*queue.lines, *([said] if said else []))),
        ladder.gang_rung(job),
        ladder.nodes_rung(cycle, fitting),
    ]
    enough = True
    if ladder.is_confined(job):
        rung, enough = ladder.topology_rung(cycle, job, fitting)
        rungs.append(rung)
    rungs.append(ladder.eviction_rung(cycle, job, fitting))
    failures = _bind_failures(facts)
    if failures:
        rungs.append(Rung("Binding", tuple(failures[-LATEST_FAILURES:])))
    return tuple(rungs), enough


def _bind_failures(facts: Facts) -> list[str]:
    return [str(event.get("message")) for event in facts.events if BIND_FAILURE in str(event.get("message"))]


def _cause(facts: Facts, trial: Trial, topology_is_enough: bool) -> tuple[WaitReason, str]:
    job = trial.job
    refusal = _refusal(facts, trial.after)
    if job.is_pending and refusal is not None:
        return _word(refusal.reason), _told(trial, refusal)
    if len(job.tasks) < job.min_member:
        return (
            WaitReason.PODS_MISSING,
            f"{len(job.tasks)} of the {counted(job.min_member, 'pod')} that it needs {verb(len(job.tasks), 'exist')}",
        )
    gated = sum(task.gated for task in job.tasks.values())
    if gated > len(job.tasks) - job.min_member:
        return (
            WaitReason.PODS_GATED,
            f"{gated} of its {counted(len(job.tasks), 'pod')} {verb(gated, 'have')} scheduling gates",
        )
    return _cause_in_nodes(trial, topology_is_enough) or _last_cause(facts, trial)


def _told(trial: Trial, refusal: core.PodGroupCondition) -> str:
    """What the scheduler wrote, without the advice, and whose limit it is if not the queue's own."""
    because = refusal.message.partition(". ")[0]
    because = because[:1].lower() + because[1:]
    if refusal.reason == WaitReason.QUEUE_QUOTA_INSUFFICIENT:
        owner = ladder.owner_of_limit(trial.cycle, trial.job)
        if not owner:
            because += "; no capability says so: it is what the cluster has, less what other queues are guaranteed"
        elif owner != trial.job.queue_name:
            because += f"; the limit is that of queue {owner} above it"
    return because


def _word_of_queue(after: Rehearsal, key: str) -> str:
    """What the cycle noted about the queue that gives the job nothing more."""
    report = after.reports.get(key)
    return next((note for note in report.notes if note.startswith("queue ")), "") if report else ""


def _cause_in_nodes(trial: Trial, topology_is_enough: bool) -> tuple[WaitReason, str] | None:
    job, fitting = trial.job, trial.fitting
    hopeless = next((fit for fit in fitting if not fit.room), None)
    if hopeless is not None:
        role = f" of role {hopeless.role}" if hopeless.role else ""
        return WaitReason.NODES_REFUSE, f"no node takes a pod{role}: {hopeless.text}"
    if not topology_is_enough:
        rung, _ = ladder.topology_rung(trial.cycle, job, fitting)
        return WaitReason.TOPOLOGY_TOO_SMALL, f"no HyperNode that it may use has room for the gang: {rung.lines[-1]}"
    missing = max(job.min_member - job.ready_count, 0)
    room = sum(min(fit.room, fit.waiting) for fit in fitting)
    if room < missing or (job.is_ready and room < job.counts[TaskStatus.PENDING]):
        asked = "; ".join(f"{fit.role or 'each'} {ladder.request_of(trial.cycle, fit.task)}" for fit in fitting)
        return (
            WaitReason.GANG_INCOMPLETE,
            f"there is room for {room} of the {counted(missing, 'pod')} that it lacks ({asked})",
        )
    return None


def _last_cause(facts: Facts, trial: Trial) -> tuple[WaitReason, str]:
    """The nodes have room for the gang: something else must be in its way, if anything."""
    queue = _word_of_queue(trial.after, facts.group_key)
    if queue:
        return WaitReason.QUEUE_EXHAUSTED, queue
    failures = _bind_failures(facts)
    if failures:
        return WaitReason.BINDING_REFUSED, failures[-1]
    if trial.job.is_pending:
        return WaitReason.NOT_ADMITTED_YET, "no scheduling cycle has looked at it yet"
    return WaitReason.ABOUT_TO_START, "there is room for it; its pods are being placed"


def _refusal(facts: Facts, after: Rehearsal) -> core.PodGroupCondition | None:
    """Why the group is not admitted: what the scheduler wrote, else what a cycle would write."""
    written = facts.group.status.conditions if facts.group else ()
    found = next((item for item in written if item.type == "Admitted"), None)
    return next(
        (item for item in (after.condition(facts.group_key, "Admitted"), found) if item and item.status == "False"),
        None,
    )


def _word(reason: str) -> WaitReason:
    try:
        return WaitReason(reason)
    except ValueError:
        return WaitReason.NOT_ADMITTED_YET
