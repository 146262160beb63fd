"""The rung of evictions: who could be evicted for a job, by which action of the policy, and why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stromboli.cli.counting import counted, plural, verb
from stromboli.cli.rehearsing.ladder import RoleFit
from stromboli.cli.rehearsing.rungs import Rung
from stromboli.scheduler.actions import victims
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.records import Job, Node, Task
from stromboli.scheduler.core.statuses import TaskStatus

EVICTING = {"preempt", "reclaim", "gangpreempt", "gangreclaim"}


def eviction_rung(cycle: Cycle, job: Job, fitting: Sequence[RoleFit]) -> Rung:
    """Who could be evicted for the job by the actions of the policy, and why not."""
    actions = [action for action in cycle.policy.actions if action in EVICTING]
    if not actions:
        named = ", ".join(cycle.policy.actions)
        return Rung("Eviction", (f"none: no action of the policy evicts (actions: {named})",))
    if not fitting:
        return Rung("Eviction", ("nothing to evict for",))
    task = fitting[0].task
    lines: list[str] = []
    if {"preempt", "gangpreempt"} & set(actions):
        lines.extend(_evictable(cycle, task, PREEMPT))
    if {"reclaim", "gangreclaim"} & set(actions):
        lines.extend(_evictable(cycle, task, RECLAIM))
    return Rung("Eviction", tuple(lines))


@dataclass(frozen=True)
class _Kind:
    """One way of evicting: whom it looks at, and what keeps a pod from being looked at closer."""

    action: str
    hook: str
    whom: str
    concerns: Callable[[Task, Task], bool]
    obstacles: Mapping[str, Callable[[Task, Task], bool]]


def _same_queue(task: Task, other: Task) -> bool:
    return other.job is not None and task.job is not None and other.job is not task.job and _queues_agree(task, other)


def _queues_agree(task: Task, other: Task) -> bool:
    return bool(other.job and task.job and other.job.queue is task.job.queue)


def _other_queue(task: Task, other: Task) -> bool:
    return bool(other.job and other.job.queue is not None and not _queues_agree(task, other))


def _not_lower(task: Task, other: Task) -> bool:
    return bool(other.job and task.job and other.job.priority >= task.job.priority)


def _keeps(_task: Task, other: Task) -> bool:
    return bool(other.job and other.job.queue and not other.job.queue.reclaimable)


def _firm(_task: Task, other: Task) -> bool:
    return not other.preemptable


PREEMPT = _Kind(
    "preempt",
    "preemptable",
    "of the queue",
    _same_queue,
    {"not of lower priority": _not_lower, "not preemptable": _firm},
)
RECLAIM = _Kind(
    "reclaim",
    "reclaimable",
    "of other queues",
    _other_queue,
    {"of a queue that is not reclaimable": _keeps, "not preemptable": _firm},
)


def _evictable(cycle: Cycle, task: Task, kind: _Kind) -> Iterator[str]:
    if task.preemption_policy == victims.NEVER:
        yield f"{kind.action}: preemptionPolicy of the pods is Never"
        return
    queue = task.job.queue if task.job is not None else None
    if kind is RECLAIM and queue is not None and not cycle.combination.preemptive(queue, [task]):
        yield f"reclaim: queue {queue.name} has what it deserves and may take nothing from others"
        return
    rows = victims.worth_trying(cycle, task)
    running = {node.name: list(_running(task, node, kind)) for node in cycle.view.row_nodes(rows)}
    total = sum(map(len, running.values()))
    if not total:
        yield f"{kind.action}: no pods {kind.whom} run on nodes that could take one"
        return
    kept, candidates = _sifted(task, kind, running)
    if not any(candidates.values()):
        yield f"{kind.action}: none of the {total} running {plural(total, 'pod')} {kind.whom} may go: {_listed(kept)}"
        return
    yield from _judged(cycle, task, kind, kept, candidates)


def _running(task: Task, node: Node, kind: _Kind) -> Iterator[Task]:
    for other in node.tasks.values():
        if other.status == TaskStatus.RUNNING and kind.concerns(task, other):
            yield other


def _sifted(
    task: Task, kind: _Kind, running: Mapping[str, Sequence[Task]]
) -> tuple[Counter[str], dict[str, list[Task]]]:
    """How many pods each obstacle keeps, and those that nothing keeps, by node."""
    kept: Counter[str] = Counter()
    left: dict[str, list[Task]] = {}
    for node, tasks in running.items():
        for other in tasks:
            obstacle = next((name for name, holds in kind.obstacles.items() if holds(task, other)), "")
            if obstacle:
                kept[obstacle] += 1
            else:
                left.setdefault(node, []).append(other)
    return kept, left


def _judged(
    cycle: Cycle, task: Task, kind: _Kind, kept: Counter[str], candidates: Mapping[str, list[Task]]
) -> Iterator[str]:
    """What the plugins say of the candidates, node by node."""
    ask = cycle.combination.preemptable if kind is PREEMPT else cycle.combination.reclaimable
    let_go, room = 0, 0
    refused: Counter[str] = Counter()
    for name, tasks in candidates.items():
        node = cycle.view.nodes_by_name[name]
        chosen = ask(task, tasks)
        let_go += len(chosen)
        room += victims.suffice(cycle, task, node, chosen)
        for plugin, allowed in cycle.combination.opinions(kind.hook, task, tasks):
            refused[plugin] += len(tasks) - len(allowed)
    count = sum(map(len, candidates.values()))
    others = f" ({_listed(kept)})" if kept else ""
    yield (
        f"{kind.action}: {counted(count, 'running pod')} {kind.whom} could go{others}, the plugins let {let_go}; "
        f"that makes room for a pod on {counted(room, 'node')}"
    )
    vetoes = [f"{name} keeps {number}" for name, number in refused.items() if number]
    if let_go < count and vetoes:
        yield f"  {', '.join(vetoes)}"


def _listed(kept: Counter[str]) -> str:
    return ", ".join(f"{number} {verb(number, 'are')} {what}" for what, number in kept.items())
