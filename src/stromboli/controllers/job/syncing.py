"""Syncing: bringing a job's objects to what its spec says, and its status to what is there (spec 02 section 11).

Pods exist only behind the gate: before the scheduler has admitted the PodGroup none is created. Counting is done in
every pass, gate open or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from stromboli.api import names
from stromboli.api.batch import JobStatus, TaskSpec
from stromboli.api.phases import JobPhase as Phase
from stromboli.api.reasons import EventReason
from stromboli.controllers.job import (
    attention,
    contradictions,
    dependencies,
    killing,
    phases,
    podgroups,
    pods,
    precedence,
    restarts,
    status,
    successes,
    volumes,
)
from stromboli.controllers.job.counting import Count
from stromboli.controllers.job.members import Member
from stromboli.controllers.job.observed import Observed
from stromboli.controllers.job.operations import (
    CreatePodGroup,
    CreatePods,
    KeepAttachment,
    LookAgain,
    Operation,
    PatchJob,
    PatchPodGroup,
    RecordEvent,
    RemovePods,
    WriteStatus,
)
from stromboli.controllers.job.phases import Step
from stromboli.controllers.job.plugins import Replica, marker
from stromboli.controllers.job.refusals import Refused
from stromboli.kube.events import EventType
from stromboli.kube.json import JsonObject

MOST_AT_ONCE = 5000
"""Pods that one pass orders; those that come of it bring the next pass. One huge job keeps no others waiting."""
MOST_NOTES = 5
"""Policies without effect that a job is told of; who has more of them has understood by then."""
QUEUE_NOT_FOUND = "QueueNotFound"
_IN_VAIN = frozenset({QUEUE_NOT_FOUND, contradictions.INVALID_JOB, attention.NO_SCHEDULER})
_GOING_ON = frozenset({Phase.PENDING, Phase.RUNNING})
"""Phases with no reason of their own; that of a restart says what is to be restarted, and has to stay."""


def sync(view: Observed, step: Step, now: float) -> list[Operation]:
    """Operations of a sync. Raises Refused when claim or plugin cannot be had, or a new job's queue.

    A job whose queue was deleted later is still counted; only nothing is made for it until the queue is back.
    """
    if view.queue is None and not view.job.status.state.phase:
        raise Refused(
            QUEUE_NOT_FOUND, f"queue {view.job.spec.queue} not found: create it, or submit the job to one that exists"
        )
    if view.plugin_error:
        raise Refused("PluginError", f"Execute plugin when job add failed, err: {view.plugin_error}")
    if not view.job.status.state.phase:
        return _beginning(view, step, now)
    naming = volumes.naming(view) if _starting(view) and view.queue is not None else None
    if naming is not None:
        return [naming]  # the named volumes come back with the changed job
    draft = _draft(view, phases.phase_of(view.job.status.state.phase))
    made = _made(view, draft) if view.queue is not None else []
    moves = _moves(view)
    kept = killing.remembered_successes(view, moves.removed)
    draft.count = killing.count(view.members, moves.removed, kept)
    for order in moves.created:
        draft.count.add(order.task, "Pending")
    successes.record(draft.controlled, kept)
    draft.phase = phases.next_phase(draft.phase, step.rule, status.tally(view.job, draft))
    if draft.phase is not Phase.RESTARTING:
        restarts.forget(draft.controlled)
        draft.reason, draft.message = _outcome(view, draft, now)
    if draft.phase not in _GOING_ON:  # nobody waits any more for a gang whose job has ended
        made = [one for one in made if not _is_about_waiting(one)]
    written = WriteStatus(status.compose(view.job, draft, now))
    return [*made, *moves.operations(), *_warning(view, draft), written, *_later(view, moves, now)]


def _later(view: Observed, moves: _Moves, now: float) -> list[Operation]:
    """A look when what waits for a scheduler will have waited for long; earlier ones take its place."""
    new = bool(moves.created) or view.group is None
    waits = [attention.look_again_in(view, now), attention.PATIENCE if new else None]
    return [LookAgain(min(wait for wait in waits if wait is not None))] if any(waits) else []


def _beginning(view: Observed, step: Step, now: float) -> list[Operation]:
    """Write down that the job is Pending, then do what is done for one that is; or later, if that cannot be had now."""
    draft = _draft(view, Phase.PENDING)
    draft.count = killing.count(view.members, (), killing.remembered_successes(view))
    begun = WriteStatus(status.compose(view.job, draft, now))
    job = view.job.model_copy(update={"status": JobStatus.from_wire(begun.status)})
    told = list(_policies_told(view))
    try:
        return [begun, *told, *sync(replace(view, job=job), step, now)]
    except Refused:
        return [begun, *told, LookAgain()]


def _policies_told(view: Observed) -> Iterator[Operation]:
    """What a job's policies will not do is told once, at its beginning: they can hardly be changed later."""
    found = list(precedence.notes(view.job))
    for note in found[:MOST_NOTES]:
        more = f" ({len(found)} such findings in all)" if len(found) > MOST_NOTES else ""
        text = f"{note[: status.LONGEST_MESSAGE - len(more)]}{more}"
        yield RecordEvent(EventType.WARNING, precedence.WITHOUT_EFFECT, text)


def _made(view: Observed, draft: status.Draft) -> list[Operation]:
    return [*_forwarding(view), *_attachments(view, draft), *_claims(view, draft), *_pod_group(view)]


def _warning(view: Observed, draft: status.Draft) -> list[Operation]:
    """One Event when a job begins to wait in vain; that it has been told is read off the reason in its status."""
    if draft.reason not in _IN_VAIN or (draft.reason, draft.message) == _said(view):
        return []
    return [RecordEvent(EventType.WARNING, draft.reason, draft.message)]


def _said(view: Observed) -> tuple[str, str]:
    state = view.job.status.state
    return state.reason, state.message


def _starting(view: Observed) -> bool:
    return phases.phase_of(view.job.status.state.phase) is Phase.PENDING


def _draft(view: Observed, phase: Phase) -> status.Draft:
    stored = view.job.status
    return status.Draft(
        phase=phase,
        count=Count(),  # follows once it is known which pods go
        version=stored.version,
        retry_count=stored.retry_count,
        min_available=view.job.spec.min_available,
        controlled=dict(stored.controlled_resources),
        reason=stored.state.reason,
        message=stored.state.message,
    )


def _outcome(view: Observed, draft: status.Draft, now: float) -> tuple[str, str]:
    """Reason and message of the phase a sync ends in: of a failure, and of what the job waits for in vain."""
    if draft.phase in _GOING_ON:
        return _in_vain(view, now)
    if draft.phase is not Phase.FAILED:
        return "", ""
    if draft.retry_count >= status.max_retry(view.job):
        told = f"; last: {view.job.status.state.message}" if view.job.status.state.message else ""
        return "MaxRetryReached", f"restarted {draft.retry_count} times, which is all that maxRetry allows{told}"
    return "TooFewSucceeded", f"{draft.count['Succeeded']} pods succeeded, {draft.count['Failed']} failed"


def _in_vain(view: Observed, now: float) -> tuple[str, str]:
    if view.queue is None:
        return QUEUE_NOT_FOUND, _queue_deleted(view)
    found = contradictions.first(view.job)
    if found:
        return contradictions.INVALID_JOB, found[: status.LONGEST_MESSAGE]
    unheeded = attention.complaint(view, now)
    return (attention.NO_SCHEDULER, unheeded[: status.LONGEST_MESSAGE]) if unheeded else ("", "")


def _queue_deleted(view: Observed) -> str:
    queue = view.job.spec.queue
    return (
        f"queue {queue} was deleted: pods that are there are still counted, but none is created; create the queue "
        "again to go on, or delete the job and submit it to another queue"
    )


def _forwarding(view: Observed) -> list[Operation]:
    if not _forwarded(view) or (view.job.metadata.annotations).get(names.JOB_FORWARDING) == "true":
        return []
    return [PatchJob({"metadata": {"annotations": {names.JOB_FORWARDING: "true"}}})]


def _forwarded(view: Observed) -> bool:
    return view.queue is not None and bool(view.queue.spec.extend_clusters)


def _attachments(view: Observed, draft: status.Draft) -> list[Operation]:
    """Everything plugins need while the job starts; later only what follows the scale of the job."""
    kept: list[Operation] = []
    for plugin in view.plugins:
        first = _starting(view) and marker(plugin.name) not in draft.controlled
        kept += [KeepAttachment(one) for one in plugin.attachments(view.job) if first or one.always]
        if first and plugin.marked:
            draft.controlled[marker(plugin.name)] = plugin.name
    return kept


def _claims(view: Observed, draft: status.Draft) -> list[Operation]:
    if not _starting(view):
        return []
    wanted, controlled = volumes.claims(view)
    draft.controlled |= controlled
    return wanted


def _pod_group(view: Observed) -> list[Operation]:
    try:
        if view.group is None:
            return [CreatePodGroup(podgroups.build(view.job, view.priorities))]
        patch = podgroups.changes(view.job, view.group, view.priorities)
    except ValueError as error:  # a quantity or pod spec that cannot be read
        raise Refused("PodGroupError", f"Failed to create PodGroup, err: {error}") from error
    made: list[Operation] = []
    if patch:
        made.append(PatchPodGroup(view.group.name, patch))
    told = podgroups.complaint(view.group)
    if told is not None:
        what, why = told
        text = f"PodGroup {view.job.namespace}:{view.job.name} {what}, reason: {why}"
        made.append(RecordEvent(EventType.WARNING, EventReason.POD_GROUP_PENDING, text))
    return made


def _is_about_waiting(operation: Operation) -> bool:
    return isinstance(operation, RecordEvent) and operation.reason == EventReason.POD_GROUP_PENDING


@dataclass(frozen=True, slots=True)
class _Order:
    """A pod to create."""

    task: str
    manifest: JsonObject


@dataclass(slots=True)
class _Moves:
    """Pods that come and pods that go."""

    created: list[_Order] = field(default_factory=list)
    removed: list[Member] = field(default_factory=list)
    more: bool = False
    """Whether the pods that are created are not all, or are waited for by a policy."""

    def operations(self) -> list[Operation]:
        found: list[Operation] = []
        if self.created:
            found.append(CreatePods(tuple(order.manifest for order in self.created)))
        if self.more:
            found.append(LookAgain())
        if self.removed:
            found.append(RemovePods(tuple(self.removed)))
        return found


def _moves(view: Observed) -> _Moves:
    leftovers = killing.unfinished(view)
    moves = _Moves(removed=[*leftovers, *(one for one in view.members if one.marked and not one.terminating)])
    if podgroups.admitted(view.group):
        for task in view.job.spec.tasks:
            _move_task(view, task, moves)
    moves.more = len(moves.created) >= MOST_AT_ONCE or (bool(moves.created) and _waited_for(view))
    moves.removed = list({one.uid: one for one in moves.removed}.values())
    return moves


def _waited_for(view: Observed) -> bool:
    """Whether a policy may count the time of pods from their creation on."""
    lists = (view.job.spec.policies, *(task.policies for task in view.job.spec.tasks))
    return any(policy.timeout is not None for found in lists for policy in found)


def _move_task(view: Observed, task: TaskSpec, moves: _Moves) -> None:
    """Missing replicas are ordered unless they have succeeded already; surplus ones are removed."""
    name, job = pods.task_name(task), view.job.name
    wanted = {names.job_pod_name(job, name, index): index for index in range(task.replicas)}
    present = {one.name: one for one in view.members if one.task == name}
    moves.removed += [one for one in present.values() if not one.terminating and one.name not in wanted]
    done = successes.of(view.job, name)
    missing = (index for pod, index in wanted.items() if pod not in present and index not in done)
    ordered = list(islice(missing, MOST_AT_ONCE - len(moves.created)))
    if ordered and view.queue is not None and dependencies.may_start(view, task):
        maker = pods.PodMaker(view.job, task, forwarded=_forwarded(view))
        moves.created += [_Order(name, _decorated(view, task, maker, index)) for index in ordered]


def _decorated(view: Observed, task: TaskSpec, maker: pods.PodMaker, index: int) -> JsonObject:
    pod = maker.make(index)
    for plugin in view.plugins:
        try:
            plugin.decorate(pod, Replica(view.job, task, index))
        except Exception as error:  # a plugin may be anybody's code; its faults are the job's alone
            raise Refused(
                "PluginError", f"Execute plugin {plugin.name} when pod create failed, err: {error}"
            ) from error
    return pod
