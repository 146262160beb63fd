"""The ladder of an explanation: gang, nodes, topology. Pure questions to an open cycle.

Each rung is a title and lines for people; numbers are those of the cycle the scheduler would run now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stromboli.cli.counting import counted, verb
from stromboli.cli.rehearsing.rungs import Rung, amount, request_of
from stromboli.scheduler.core.columns import EPSILON, Floats
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.fit_errors import FitErrors
from stromboli.scheduler.core.records import ROOT_HYPER_NODE, Job, Task
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.tables import Rows

NEAREST = 3
TOPOLOGY_PLUGIN = "network-topology-aware"


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
    problem: str = ""
    """Why no node can be tried: a claim that is not there, say."""

    @property
    def text(self) -> str:
        """Counts of refusals, most frequent first."""
        ordered = sorted(self.errors.counts.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(f"{count} {reason}" for reason, count in ordered)


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
    problem = cycle.combination.prepare(task)
    if problem is not None:  # no node is even tried
        errors = FitErrors.everywhere(int(cycle.view.nodes.live.sum()), problem)
        return RoleFit(role, task, len(tasks), errors, np.empty(0, dtype=np.intp), 0, problem)
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
        lines.extend(f"  nearest: {node} lacks {what}" for node, what in near_misses(cycle, fit))
    return Rung("Nodes", tuple(lines or ["no pod waits for a node"]))


def _share_of(room: int, waiting: int) -> str:
    """``3 of 4``, or ``all 4`` where there is room for as many or more."""
    return f"all {waiting}" if room >= waiting else f"{room} of {waiting}"


def near_misses(cycle: Cycle, fit: RoleFit) -> Iterator[tuple[str, str]]:
    """Nodes that only lack room, those that lack least first, with what they lack."""
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
                f"{cycle.view.columns.names[column]} {amount(cycle, column, short[at][place])}"
                for place, column in enumerate(columns.tolist())
                if short[at][place] > EPSILON
            ]
            yield node.name, ", ".join(parts)


# -- topology ----------------------------------------------------------------------------------------------------------


def is_confined(job: Job) -> bool:
    """Whether the job must stay within a HyperNode."""
    return job.hard_tier is not None and job.topology is not None and job.topology.mode == "hard"


def topology_rung(cycle: Cycle, job: Job, fitting: Sequence[RoleFit]) -> tuple[Rung, bool]:
    """For each tier that the job may use, the HyperNode with most room; and whether any has enough."""
    if TOPOLOGY_PLUGIN not in {option.name for tier in cycle.policy.tiers for option in tier}:
        return Rung("Topology", (f"not heeded: plugin {TOPOLOGY_PLUGIN} is not in the policy",)), True
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
