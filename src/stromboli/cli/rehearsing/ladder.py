"""The ladder of an explanation: queue, gang, nodes, topology, eviction. Pure questions to an open cycle.

Each rung is a title and lines for people; numbers are those of the cycle the scheduler would run now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stromboli.api import core
from stromboli.cli.counting import counted, plural, verb
from stromboli.scheduler.actions import victims
from stromboli.scheduler.core import amounts
from stromboli.scheduler.core.columns import EPSILON, PODS, Floats
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.fit_errors import FitErrors
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, Job, Queue, Task
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.tables import Rows
from stromboli.scheduler.core.view import Sample

NEAREST = 3
EVICTING = {"preempt", "reclaim", "gangpreempt", "gangreclaim"}
UNLIMITED = "-"


@dataclass(frozen=True)
class Rung:
    """One level of the ladder."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class RoleFit:
    """How the nodes answer to the pods of one role."""

    role: str
    task: Task
    waiting: int
    errors: FitErrors
    rows: Rows
    """Nodes that pass all filters, whether or not they have room."""
    room: int
    """Pods of this kind for which there is room now."""

    @property
    def text(self) -> str:
        """Counts of refusals, most frequent first."""
        ordered = sorted(self.errors.counts.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(f"{count} {reason}" for reason, count in ordered)


# -- queue -------------------------------------------------------------------------------------------------------------


def queue_rung(cycle: Cycle, job: Job, samples: Sequence[Sample]) -> Rung:
    """Each level from the job's queue to the root: state, share, and head-room by resource."""
    lines: list[str] = []
    for depth, queue in enumerate(lineage(cycle, job)):
        lines.extend("  " * depth + line for line in _queue_lines(cycle, job, queue, samples))
    return Rung("Queue", tuple(lines))


def lineage(cycle: Cycle, job: Job) -> Iterator[Queue]:
    """The job's queue and those above it."""
    seen: set[str] = set()
    name = job.queue_name
    while name in cycle.mirror.queues and name not in seen:
        seen.add(name)
        queue = cycle.mirror.queues[name]
        yield queue
        name = queue.resource.spec.parent or ("root" if name != "root" else "")


def _queue_lines(cycle: Cycle, job: Job, queue: Queue, samples: Sequence[Sample]) -> Iterator[str]:
    share = _sample(samples, "queue_share", queue.name)
    told = f", share {share:.2f}" if share is not None else ""
    state = queue.resource.status.state or "not open yet"
    yield f"{queue.name}: {state}, weight {queue.resource.spec.weight or 0}{told}"
    wanted = job.min_resources if job.min_resources is not None else np.zeros(cycle.view.columns.width)
    held = _held(cycle, queue)
    spec = queue.resource.spec
    limits = [_vector(cycle, listed) for listed in (spec.deserved, spec.guarantee.resource, spec.capability)]
    for column in np.nonzero(wanted >= EPSILON)[0].tolist():
        if column == PODS:
            continue
        deserved, guarantee, capability = (_amount(cycle, column, vector[column]) for vector in limits)
        deserved = deserved if deserved != UNLIMITED else _worked_out(cycle, column, queue, samples)
        yield (
            f"  {cycle.view.columns.names[column]}: {_amount(cycle, column, held[column])} in use, "
            f"{_amount(cycle, column, wanted[column])} wanted, deserved {deserved}, guaranteed {guarantee}, "
            f"at most {capability}"
        )


def _worked_out(cycle: Cycle, column: int, queue: Queue, samples: Sequence[Sample]) -> str:
    """What the policy says the queue deserves (proportion works it out from the weights)."""
    name = cycle.view.columns.names[column]
    series = {"cpu": "milli_cpu", "memory": "memory_bytes"}.get(name)
    value = _sample(samples, f"queue_deserved_{series}", queue.name) if series else None
    return UNLIMITED if value is None else _amount(cycle, column, value)


def owner_of_limit(cycle: Cycle, job: Job) -> str:
    """The lowest queue above the job whose own capability is too small for it; empty when there is none."""
    wanted = job.min_resources
    if wanted is None:
        return ""
    for queue in lineage(cycle, job):
        capability = _vector(cycle, queue.resource.spec.capability)
        total = _held(cycle, queue) + wanted
        if (total > capability + EPSILON).any():
            return queue.name
    return ""


def _held(cycle: Cycle, queue: Queue) -> Floats:
    """What a queue and those below it hold."""
    total = queue.allocated.copy()
    for other in cycle.mirror.queues.values():
        if other is not queue and queue.name in _above(cycle, other):
            total += other.allocated
    return total


def _above(cycle: Cycle, queue: Queue) -> set[str]:
    seen: set[str] = set()
    name = queue.resource.spec.parent or ("root" if queue.name != "root" else "")
    while name and name not in seen:
        seen.add(name)
        parent = cycle.mirror.queues.get(name)
        name = (parent.resource.spec.parent or ("root" if name != "root" else "")) if parent else ""
    return seen


def _vector(cycle: Cycle, listed: core.ResourceList) -> Floats:
    return cycle.view.columns.vector(amounts.read(listed), missing=np.nan)


def _amount(cycle: Cycle, column: int, value: float) -> str:
    if not np.isfinite(value):
        return UNLIMITED
    name = cycle.view.columns.names[column]
    return amounts.write({name: float(value)})[name]


def _sample(samples: Sequence[Sample], name: str, queue: str) -> float | None:
    wanted = (("queue_name", queue),)
    return next((sample.value for sample in samples if sample.name == name and sample.labels == wanted), None)


# -- gang --------------------------------------------------------------------------------------------------------------


def gang_rung(job: Job) -> Rung:
    """What the gang needs, has and lacks, in all and by role."""
    counts = {TaskStatus(index).word: count for index, count in enumerate(job.counts) if count}
    told = ", ".join(f"{count} {word}" for word, count in counts.items()) or "no pods yet"
    missing = max(job.min_member - job.ready_count - job.pending_best_effort, 0)
    placed = f"{job.ready_count} {verb(job.ready_count, 'have')} a place"
    lines = [f"needs {counted(job.min_member, 'pod')} at once, {placed}: short by {missing} ({told})"]
    for role, minimum in job.role_minimums.items():
        present = sum(job.role_counts.get(role, []))
        if present < minimum:
            lines.append(f"role {role} needs {counted(minimum, 'pod')} and has {present}")
    return Rung("Gang", tuple(lines))


# -- nodes -------------------------------------------------------------------------------------------------------------


def fits(cycle: Cycle, job: Job) -> list[RoleFit]:
    """How nodes answer to each kind of pod that waits."""
    kinds: dict[tuple[str, int], list[Task]] = {}
    for task in job.tasks.values():
        if task.status == TaskStatus.PENDING:
            kinds.setdefault((task.role, task.shape.index), []).append(task)
    return [_fit(cycle, role, tasks) for (role, _), tasks in kinds.items()]


def _fit(cycle: Cycle, role: str, tasks: Sequence[Task]) -> RoleFit:
    task = tasks[0]
    evaluation = cycle.searches.of(task)
    errors = evaluation.errors(None, ROOT_HYPER_NODE)
    rows = evaluation.feasible(None, resources=False)
    return RoleFit(role, task, len(tasks), errors, rows, _room(cycle, task, rows))


def _room(cycle: Cycle, task: Task, rows: Rows) -> int:
    """Pods like this for which there is room in nodes, counted node by node."""
    columns = np.array(task.shape.requested, dtype=np.intp)
    if not len(columns) or not len(rows):
        return len(rows)
    idle = cycle.view.nodes.idle[np.ix_(rows, columns)] + EPSILON
    return int(np.floor(idle / task.request[columns]).min(axis=1).clip(min=0).sum())


def nodes_rung(cycle: Cycle, fitting: Sequence[RoleFit]) -> Rung:
    """How many nodes are refused by which filter, and the nearest misses with what they lack."""
    lines: list[str] = []
    live = int(cycle.view.nodes.live.sum())
    for fit in fitting:
        asked = request_of(cycle, fit.task)
        taking = live - fit.errors.nodes
        takes = f"{taking} of {counted(live, 'node')} {verb(taking, 'take')} one now"
        lines.append(f"{fit.role or 'pods'} ({fit.waiting} waiting, each {asked}): {takes}")
        if fit.errors.counts:
            lines.append(f"  refused: {fit.text}")
        lines.append(f"  room for {_share_of(fit.room, fit.waiting)}")
        lines.extend(f"  nearest: {line}" for line in _near_misses(cycle, fit))
    return Rung("Nodes", tuple(lines or ["no pod waits for a node"]))


def _share_of(room: int, waiting: int) -> str:
    """``3 of 4``, or ``all 4`` where there is room for as many or more."""
    return f"all {waiting}" if room >= waiting else f"{room} of {waiting}"


def request_of(cycle: Cycle, task: Task) -> str:
    written = amounts.write(cycle.view.columns.amounts(task.request, task.shape.requested))
    return (
        ", ".join(f"{name} {amount}" for name, amount in written.items() if name != "pods" and amount != "0")
        or "nothing"
    )


def _near_misses(cycle: Cycle, fit: RoleFit) -> Iterator[str]:
    """Nodes that only lack room, those that lack least first."""
    columns = np.array(fit.task.shape.requested, dtype=np.intp)
    if not len(columns) or not len(fit.rows):
        return
    request: Floats = fit.task.request[columns]
    idle: Floats = cycle.view.nodes.idle[np.ix_(fit.rows, columns)]
    short = np.maximum(request - idle, 0.0)
    lacking = (short / request).sum(axis=1)
    order = np.argsort(lacking, kind="stable")
    for at in [index for index in order.tolist() if lacking[index] > 0.0][:NEAREST]:
        node = cycle.view.node_list[fit.rows[at]]
        if node is not None:
            parts = [
                f"{cycle.view.columns.names[column]} {_amount(cycle, column, short[at][place])}"
                for place, column in enumerate(columns.tolist())
                if short[at][place] > EPSILON
            ]
            yield f"{node.name} lacks {', '.join(parts)}"


# -- topology ----------------------------------------------------------------------------------------------------------


def is_confined(job: Job) -> bool:
    """Whether the job must stay within a HyperNode."""
    return job.hard_tier is not None and job.topology is not None and job.topology.mode == "hard"


def topology_rung(cycle: Cycle, job: Job, fitting: Sequence[RoleFit]) -> tuple[Rung, bool]:
    """For each tier that the job may use, the HyperNode with most room; and whether any has enough."""
    view, missing = cycle.view.hyper_nodes, max(job.min_member - job.ready_count, 0)
    lines, enough = [], False
    for tier in [tier for tier in view.tiers if job.hard_tier is None or tier <= job.hard_tier]:
        rooms = {
            name: _room_in(cycle, view.rows[name], fitting)
            for name, known in view.by_name.items()
            if known.tier == tier and name in view.rows
        }
        if rooms:
            best = max(sorted(rooms), key=lambda name: rooms[name])
            enough = enough or rooms[best] >= missing
            lines.append(f"tier {tier}: {best} has room for {rooms[best]} of the {counted(missing, 'pod')} needed")
    if not lines:
        lines.append(f"no HyperNode of tier {job.hard_tier} or below")
    return Rung("Topology", tuple(lines)), enough


def _room_in(cycle: Cycle, rows: Rows, fitting: Sequence[RoleFit]) -> int:
    return sum(min(_room(cycle, fit.task, np.intersect1d(fit.rows, rows)), fit.waiting) for fit in fitting)


# -- eviction ----------------------------------------------------------------------------------------------------------


def eviction_rung(cycle: Cycle, job: Job, fitting: Sequence[RoleFit]) -> Rung:
    """Who could be evicted for the job by the actions of the policy, and why not."""
    actions = [action for action in cycle.policy.actions if action in EVICTING]
    if not actions:
        named = ", ".join(cycle.policy.actions)
        return Rung("Eviction", (f"none: no action of the policy evicts (actions: {named})",))
    if not fitting:
        return Rung("Eviction", ("nothing to evict for",))
    task = fitting[0].task
    lines = []
    if {"preempt", "gangpreempt"} & set(actions):
        lines.append(_evictable(cycle, task, "preempt", _lower_in_queue))
    if {"reclaim", "gangreclaim"} & set(actions):
        lines.append(_evictable(cycle, task, "reclaim", _of_other_queues))
    return Rung("Eviction", tuple(lines))


def _lower_in_queue(task: Task, other: Task) -> bool:
    if other.job is None or task.job is None or other.job is task.job:
        return False
    return other.job.queue is task.job.queue and other.preemptable and other.job.priority < task.job.priority


def _of_other_queues(task: Task, other: Task) -> bool:
    if other.job is None or task.job is None or other.job.queue is None:
        return False
    return other.job.queue is not task.job.queue and other.preemptable and other.job.queue.reclaimable


def _evictable(cycle: Cycle, task: Task, action: str, may_go: Callable[[Task, Task], bool]) -> str:
    if task.preemption_policy == victims.NEVER:
        return f"{action}: preemptionPolicy of the pods is Never"
    judge = cycle.combination.preemptable if action == "preempt" else cycle.combination.reclaimable
    queue = task.job.queue if task.job is not None else None
    if action == "reclaim" and queue is not None and not cycle.combination.preemptive(queue, [task]):
        return f"reclaim: queue {queue.name} has what it deserves and may take nothing from others"
    found: Counter[str] = Counter()
    for node in cycle.view.row_nodes(victims.worth_trying(cycle, task)):
        candidates = [
            other for other in node.tasks.values() if other.status == TaskStatus.RUNNING and may_go(task, other)
        ]
        if candidates:
            chosen = judge(task, candidates)
            found.update(candidates=len(candidates), chosen=len(chosen))
            found["nodes"] += victims.suffice(cycle, task, node, chosen)
    whom = "of lower priority in the queue" if action == "preempt" else "of other queues that give back"
    if not found["candidates"]:
        return f"{action}: no running pods {whom}"
    running = f"{found['candidates']} running {plural(found['candidates'], 'pod')} {whom}"
    return (
        f"{action}: {running}, the plugins let {found['chosen']} of them go; "
        f"that makes room for a pod on {counted(found['nodes'], 'node')}"
    )
