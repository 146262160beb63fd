"""Small clusters for tests: feeding objects, running cycles, and comparing whole mirrors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from stromboli.api import core
from stromboli.scheduler.actions import ACTIONS
from stromboli.scheduler.core.accounting import is_on_node
from stromboli.scheduler.core.cycle import Cycle
from stromboli.scheduler.core.mirror import Mirror
from stromboli.scheduler.core.plugin import Hooks, Plugin
from stromboli.scheduler.core.policy import Arguments, PluginOption, Policy, Switches
from stromboli.scheduler.core.results import CycleResult
from stromboli.scheduler.core.statuses import CHARGED_STATUSES, TaskStatus
from stromboli.scheduler.core.view import View
from stromboli.scheduler.plugins import built_in

NOW = core.timestamp("2026-01-02T00:00:00Z")
PLUGINS = built_in().factories


def feed(mirror: Mirror, obj: core.Object) -> None:
    """Delivers an object as its watch would."""
    match obj:
        case core.Pod():
            mirror.apply_pod(obj)
        case core.Node():
            mirror.apply_node(obj)
        case core.PodGroup():
            mirror.apply_pod_group(obj)
        case core.Queue():
            mirror.apply_queue(obj)
        case core.PriorityClass():
            mirror.apply_priority_class(obj)
        case core.HyperNode():
            mirror.apply_hyper_node(obj)
        case _:
            mirror.apply_object(obj)


def world(*objects: core.Object | Iterable[core.Object]) -> Mirror:
    """A mirror fed with objects in the order given; lists are taken apart."""
    mirror = Mirror()
    for obj in objects:
        for each in (obj,) if isinstance(obj, core.Object) else obj:
            feed(mirror, each)
    return mirror


def policy(*plugins: str | PluginOption, actions: str = "enqueue allocate backfill", **arguments: Arguments) -> Policy:
    """One tier of plugins with everything on; keyword arguments are those of actions."""
    tier = tuple(PluginOption(name) if isinstance(name, str) else name for name in plugins)
    return Policy(tuple(actions.split()), (tier,), tuple(arguments.items()))


def open_cycle(
    mirror: Mirror,
    wanted: Policy,
    *,
    plugins: Mapping[str, type[Plugin]] | None = None,
    session_id: str = "session-1",
    seed: int | None = None,
    shard: frozenset[str] | None = None,
    shard_mode: str = "none",
    options: Mapping[str, object] | None = None,
    now: float = NOW,
    speaks_for: Callable[[str], bool] = lambda queue: True,
) -> Cycle:
    """An open cycle with the built-in plugins and those given."""
    return Cycle(
        mirror,
        wanted,
        now,
        session_id=session_id,
        plugins={**PLUGINS, **(plugins or {})},
        actions=ACTIONS,
        seed=seed,
        shard=shard,
        shard_mode=shard_mode,
        options=options,
        speaks_for=speaks_for,
    )


def run_cycle(mirror: Mirror, wanted: Policy, **how: object) -> CycleResult:
    """A whole cycle."""
    cycle = open_cycle(mirror, wanted, **how)  # type: ignore[arg-type]
    for action in wanted.actions:
        cycle.execute(action)
    return cycle.close()


def binds(result: CycleResult) -> dict[str, str]:
    """Pod name to node."""
    return {bind.task.name: bind.node for bind in result.binds}


def evicted(result: CycleResult) -> list[str]:
    """Pod names."""
    return sorted(eviction.task.name for eviction in result.evictions)


def plugin_of(hooks: Hooks, plugin_name: str = "test") -> type[Plugin]:
    """A plugin with these hooks."""

    class Given(Plugin):
        name = plugin_name

        def open(self, view: View) -> Hooks:
            return hooks

    return Given


def option(name: str, **switches: bool) -> PluginOption:
    """A plugin entry with some switches changed."""
    return PluginOption(name, Switches(**switches))


@dataclass(frozen=True)
class Picture:
    """Everything that can be seen of a mirror, without the order in which things arrived."""

    nodes: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    ports: dict[str, dict[tuple[str, str, int], int]] = field(default_factory=dict)
    tasks: dict[str, tuple[str, str, str, str]] = field(default_factory=dict)
    jobs: dict[str, tuple[object, ...]] = field(default_factory=dict)
    queues: dict[str, tuple[object, ...]] = field(default_factory=dict)


def picture(mirror: Mirror) -> Picture:
    """A mirror as plain values that can be compared, whatever the order in which resources were first heard of."""
    amounts = mirror.columns.amounts
    return Picture(
        nodes={
            name: [amounts(vector) for vector in mirror.nodes.state[:, node.row]]
            for name, node in mirror.nodes_by_name.items()
            if node.row >= 0
        },
        ports={name: dict(node.ports) for name, node in mirror.nodes_by_name.items() if node.ports},
        tasks={
            key: (task.uid, task.status.word, task.node_name, task.sub_job.id if task.sub_job else "")
            for key, task in mirror.tasks.items()
        },
        jobs={
            job.id: (
                job.pod_group is not None,
                sorted(job.tasks),
                tuple(job.counts),
                job.pending_best_effort,
                job.priority,
                job.queue.name if job.queue else "",
                amounts(job.allocated),
                {role: counts for role, counts in job.role_counts.items() if any(counts)},
                {id_: (sub_job.minimum, tuple(sub_job.counts)) for id_, sub_job in job.sub_jobs.items()},
            )
            for job in mirror.jobs.values()
        },
        queues={
            name: (amounts(queue.allocated), amounts(queue.pending), sorted(queue.jobs))
            for name, queue in mirror.queues.items()
        },
    )


def audit(mirror: Mirror) -> None:
    """Checks every count and sum of a mirror against its tasks."""
    width = mirror.columns.width
    for node in mirror.nodes_by_name.values():
        for task in node.tasks.values():
            assert task.node is node
            assert is_on_node(task.status)
        if node.row < 0:
            continue
        held = sum(
            (task.request for task in node.tasks.values() if task.status != TaskStatus.PIPELINED), np.zeros(width)
        )
        promised = sum(
            (task.request for task in node.tasks.values() if task.status == TaskStatus.PIPELINED), np.zeros(width)
        )
        leaving = sum(
            (task.request for task in node.tasks.values() if task.status == TaskStatus.RELEASING), np.zeros(width)
        )
        nodes, row = mirror.nodes, node.row
        np.testing.assert_array_equal(nodes.used[row], held)
        np.testing.assert_array_equal(nodes.idle[row], nodes.allocatable[row] - held)
        np.testing.assert_array_equal(nodes.pipelined[row], promised)
        np.testing.assert_array_equal(nodes.releasing[row], leaving)
        np.testing.assert_array_equal(nodes.future[row], nodes.idle[row] + leaving - promised)
    for job in mirror.jobs.values():
        for status in TaskStatus:
            assert job.counts[status] == sum(task.status == status for task in job.tasks.values())
        charged = sum((task.request for task in job.tasks.values() if task.status in CHARGED_STATUSES), np.zeros(width))
        np.testing.assert_array_equal(job.allocated, charged)
        assert sum(len(sub_job.tasks) for sub_job in job.sub_jobs.values()) == len(job.tasks)
    for queue in mirror.queues.values():
        allocated = sum((job.allocated for job in queue.jobs.values()), np.zeros(width))
        np.testing.assert_array_equal(queue.allocated, allocated)
        waiting = [
            task.request
            for job in queue.jobs.values()
            for task in job.tasks.values()
            if task.status == TaskStatus.PENDING
        ]
        np.testing.assert_array_equal(queue.pending, sum(waiting, np.zeros(width)))
