"""Closing a cycle: PodGroup phases and conditions, pod conditions, queue amounts (spec 04 sections 29 to 32).

Only jobs about which something may have changed are looked at. What is to be written is compared with what the API
server is known to hold, so a cycle in which nothing happened writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

import msgspec
import numpy as np

from stromboli.api import core, quantities
from stromboli.scheduler.core import amounts, devices
from stromboli.scheduler.core.columns import Columns, Floats
from stromboli.scheduler.core.fit_errors import job_text, outlook
from stromboli.scheduler.core.reasons import ALL_NODES_UNAVAILABLE
from stromboli.scheduler.core.records import Dispute, Job, Phase, Queue, Task
from stromboli.scheduler.core.repeating import words_of
from stromboli.scheduler.core.results import JobReport, PodUpdate, QueueUpdate, TaskRef
from stromboli.scheduler.core.statuses import COMPLETED_STATUSES, TaskStatus
from stromboli.scheduler.core.view import Condition

PATIENCE_SECONDS = 15.0
"""How long somebody else's word about a queue is left alone."""

_WAITING = frozenset({TaskStatus.ALLOCATED, TaskStatus.PENDING, TaskStatus.PIPELINED})


def ref(task: Task) -> TaskRef:
    """The identity of a task's pod."""
    return TaskRef(task.namespace, task.name, task.uid, task.job_id)


def phase_of(job: Job, conditions: Iterable[core.PodGroupCondition], session_id: str) -> Phase:
    """The phase of a PodGroup at the end of a cycle (spec 04 section 29.2)."""
    unschedulable = any(
        item.type == "Unschedulable" and item.status == "True" and item.transition_id == session_id
        for item in conditions
    )
    if unschedulable and job.counts[TaskStatus.RUNNING]:
        return Phase.UNKNOWN
    scheduled = job.scheduled_count
    if scheduled >= job.min_member:
        completed = sum(job.counts[status] for status in COMPLETED_STATUSES)
        return Phase.COMPLETED if scheduled == completed else Phase.RUNNING
    return Phase.INQUEUE if job.phase == Phase.INQUEUE else Phase.PENDING


def status_of(job: Job, new: Sequence[Condition], session_id: str, now: float) -> core.PodGroupStatus:
    """The whole status of a PodGroup at the end of a cycle."""
    assert job.pod_group is not None
    conditions = merge_conditions(job.pod_group.status.conditions, new, session_id, now)
    return core.PodGroupStatus(
        phase=phase_of(job, conditions, session_id).word,
        conditions=conditions,
        running=job.counts[TaskStatus.RUNNING],
        succeeded=job.counts[TaskStatus.SUCCEEDED],
        failed=job.counts[TaskStatus.FAILED],
    )


def merge_conditions(
    old: Sequence[core.PodGroupCondition], new: Iterable[Condition], session_id: str, now: float
) -> tuple[core.PodGroupCondition, ...]:
    """Old conditions with new ones in the place of those of the same type; new types come last."""
    merged = list(old)
    for condition in new:
        made = core.PodGroupCondition(
            type=condition.type,
            status=condition.status,
            transition_id=session_id,
            last_transition_time=wire_time(now),
            reason=condition.reason,
            message=condition.message,
        )
        place = next((at for at, item in enumerate(merged) if item.type == condition.type), None)
        if place is None:
            merged.append(made)
        else:
            merged[place] = made
    return tuple(merged)


def wire_time(seconds: float) -> str:
    """RFC 3339 to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def same_status(left: core.PodGroupStatus, right: core.PodGroupStatus) -> bool:
    """Whether two statuses differ in nothing but when and by whom conditions were set."""
    return _timeless(left) == _timeless(right)


def _timeless(status: core.PodGroupStatus) -> core.PodGroupStatus:
    bare = tuple(
        msgspec.structs.replace(item, transition_id="", last_transition_time=None) for item in status.conditions
    )
    return msgspec.structs.replace(status, conditions=bare)


def with_conditions(
    status: core.PodGroupStatus, new: Iterable[Condition], session_id: str, now: float
) -> core.PodGroupStatus:
    """A status with new conditions and everything else as it was; a group without phase is Pending."""
    merged = merge_conditions(status.conditions, new, session_id, now)
    return msgspec.structs.replace(status, phase=status.phase or Phase.PENDING.word, conditions=merged)


def stranded_pods(job: Job, message: str) -> list[PodUpdate]:
    """Conditions of pods whose job is in no cycle; only those that say something new."""
    condition = ("False", "Unschedulable", message)
    updates = []
    for task in job.tasks.values():
        if task.status == TaskStatus.PENDING and not task.gated and task.scheduled_condition != condition:
            task.scheduled_condition = condition
            updates.append(PodUpdate(ref(task), "Unschedulable", message))
    return updates


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a job gets nothing although no node is to blame, with the next step."""

    message: str = ""
    reason: str = ""
    """Of the pods' conditions; empty for what becomes of them by the rules."""


NO_CAUSE = Cause()


def pod_updates(job: Job, cause: Cause = NO_CAUSE) -> list[PodUpdate]:
    """Conditions of tasks that were not bound; only those that say something new (spec 04 section 30.4).

    The numbers of the cause may change with everything that happens in a queue, which is not worth a write for every
    pod that waits in it.
    """
    updates: list[PodUpdate] = []
    if not any(job.counts[status] for status in _WAITING):
        return updates
    fallback: str | None = None
    for task in job.tasks.values():
        if task.status not in _WAITING or task.gated:
            continue
        told = outlook(task)
        # Autoscalers add no nodes for a pod that is "Schedulable", and this one waits like the others of its gang.
        reason = "Unschedulable" if told.reason == "Schedulable" else told.reason
        message = told.message
        if not message:
            reason = cause.reason or reason
            if cause.message and _says(task, reason, cause.message):
                continue
            fallback = fallback if fallback is not None else cause.message or job_text(job) or ALL_NODES_UNAVAILABLE
            message = fallback
        nominated = told.nominated_node if told.nominated_node != task.nominated_node else ""
        condition = ("False", reason, message)
        if condition != task.scheduled_condition or nominated:
            task.scheduled_condition = condition
            task.nominated_node = nominated or task.nominated_node
            updates.append(PodUpdate(ref(task), reason, message, nominated))
    return updates


def _says(task: Task, reason: str, cause: str) -> bool:
    """Whether the pod's condition says this already, be it with other numbers."""
    known = task.scheduled_condition
    return known is not None and known[:2] == ("False", reason) and words_of(known[2]) == words_of(cause)


def report(job: Job, text: str, invalid: str, notes: Iterable[str] = ()) -> JobReport:
    """Why a job waits, ``text`` being what ``job_text`` says about it."""
    counts = {TaskStatus(index).word: count for index, count in enumerate(job.counts) if count}
    texts = {job.tasks[uid].name: str(errors) for uid, errors in job.fit_errors.items() if uid in job.tasks}
    return JobReport(job.id, job.phase.word, job.min_member, counts, invalid, text, texts, tuple(notes))


def queue_updates(
    queues: Mapping[str, Queue],
    columns: Columns,
    held: Mapping[str, devices.Demand],
    otherwise: Mapping[str, Mapping[str, float]] | None = None,
    *,
    now: float,
    speaks_for: Callable[[str], bool] = lambda queue: True,
) -> list[QueueUpdate]:
    """``status.allocated`` of queues, ancestors included, where it differs from what was last seen.

    ``held`` says what queues themselves hold of device classes, ``otherwise`` by how much their tasks hold other
    amounts than they ask for.

    Several schedulers write the same queues. One hears of another's binds a moment later than the other decides them,
    so an amount that differs though nothing has changed here is left alone for ``PATIENCE_SECONDS``: it is probably
    right, and correcting it would be corrected in turn. Where they share the cluster by hashing, one of them
    ``speaks_for`` a queue, and the others only when it has said nothing new for as long.
    """
    own = _own_amounts(queues, columns, otherwise or {})
    updates = []
    for queue, total, demand in _with_descendants(queues, own, held):
        resource = queue.resource
        same = _same_amounts(resource.status.allocated, total, columns, demand)
        if not _is_ours_to_write(queue, total, demand, now, same=same, speaker=speaks_for(queue.name)):
            continue
        written = {**amounts.write(columns.amounts(total)), **_written_devices(demand)}
        status = msgspec.structs.replace(resource.status, allocated=dict(written))
        queue.resource = msgspec.structs.replace(resource, status=status)
        updates.append(QueueUpdate(queue.name, resource.uid, written))
    return updates


def _is_ours_to_write(
    queue: Queue, total: Floats, demand: devices.Demand, now: float, *, same: bool, speaker: bool
) -> bool:
    """Whether a queue's amount must be written, by what was decided about it before."""
    before, queue.decided = queue.decided, (total, demand)
    changed = before is None or before[1] != demand or not np.array_equal(before[0], total)
    disputed, queue.disputed = queue.disputed, None
    if same or (changed and speaker):
        return not same
    said = queue.resource.status.allocated
    if disputed is None or (not speaker and disputed.said != said):
        disputed = Dispute(now, said)
    queue.disputed = disputed
    return now - disputed.since >= PATIENCE_SECONDS


def _own_amounts(
    queues: Mapping[str, Queue], columns: Columns, otherwise: Mapping[str, Mapping[str, float]]
) -> dict[str, Floats]:
    own = {name: queue.allocated + queue.elsewhere for name, queue in queues.items()}
    for name, differences in otherwise.items():
        for resource, amount in differences.items():
            column = columns.get(resource)
            if column is not None and name in own:
                own[name][column] += amount
    return own


def _written_devices(demand: devices.Demand) -> dict[str, str]:
    return {key: quantities.format(Fraction(amount)) for key, amount in demand.items() if amount}


def _with_descendants(
    queues: Mapping[str, Queue], own: Mapping[str, Floats], held: Mapping[str, devices.Demand]
) -> Iterable[tuple[Queue, Floats, devices.Demand]]:
    totals = {name: (queue, own[name].copy(), dict(held.get(name, {}))) for name, queue in queues.items()}
    if "root" not in queues:
        return totals.values()
    for queue in queues.values():
        seen = {queue.name}
        parent = queue.resource.spec.parent or "root"
        while parent in totals and parent not in seen:
            seen.add(parent)
            totals[parent][1].__iadd__(own[queue.name])
            devices.add(totals[parent][2], held.get(queue.name, {}))
            parent = queues[parent].resource.spec.parent or "root"
    return totals.values()


def _same_amounts(
    listed: Mapping[str, quantities.Quantity], total: Floats, columns: Columns, demand: devices.Demand
) -> bool:
    try:
        known = columns.vector(amounts.read({name: listed[name] for name in listed if devices.MARK not in name}))
        had = {name: float(quantities.parse(str(listed[name]))) for name in listed if devices.MARK in name}
    except ValueError:
        return False
    same = {"cpu", "memory"} <= set(listed) and len(known) == len(total) and bool(np.array_equal(known, total))
    return same and had == {key: amount for key, amount in demand.items() if amount}
