"""rescheduling: now and then tasks on busy nodes are named as victims, for the shuffle action (spec 06 section 27)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from pydantic import Field

from stromboli.api import durations
from stromboli.scheduler.core import loads, policy
from stromboli.scheduler.core.columns import CPU, MEMORY
from stromboli.scheduler.core.pauses import Pauses
from stromboli.scheduler.core.plugin import Hooks, Plugin
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.plugins import arguments

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Node, Task
    from stromboli.scheduler.core.view import View

LOW_NODE_UTILIZATION = "lowNodeUtilization"
DEFAULT_INTERVAL = 300.0
DEFAULT_THRESHOLD = 100.0
BASIC = (CPU, MEMORY)
_LAST_RUN = "rescheduling.last-run"
_PAUSES = "rescheduling.pauses"
_Place: TypeAlias = tuple[str, str, str]
"""Name and UID of a job, and a node."""


class Strategy(arguments.ArgumentsModel):
    """One entry of ``strategies``."""

    name: arguments.Text
    params: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Percentages of cpu and memory: below ``low`` a node is idle, above ``high`` it is busy."""

    low: tuple[float, float] = (DEFAULT_THRESHOLD, DEFAULT_THRESHOLD)
    high: tuple[float, float] = (DEFAULT_THRESHOLD, DEFAULT_THRESHOLD)

    @classmethod
    def read(cls, params: Mapping[str, object]) -> Thresholds:
        """Sections that are no maps leave the defaults."""
        return cls(_section(params.get("thresholds")), _section(params.get("targetThresholds")))


def _section(given: object) -> tuple[float, float]:
    section = given if isinstance(given, Mapping) else {}
    return tuple(policy.number(section, name, DEFAULT_THRESHOLD) for name in ("cpu", "memory"))  # type: ignore[return-value]


class Rescheduling(Plugin):
    """Registers victims in a cycle that opens at least an interval after the last run.

    The load is read for the period that is collected (10m) unless another is asked for. Unlike the original, victims
    end when the room on idle nodes is used up, not when it is exactly zero; and a job that was moved off a node is not
    moved off it again for two intervals, and for twice as long each time: where its tasks are put is not decided here,
    and they may come back to the same node, or make another one busy.
    """

    name: ClassVar[str] = "rescheduling"
    arguments_model = arguments.model(
        "ReschedulingArguments",
        interval=arguments.Duration,
        metricsPeriod=arguments.Text,
        strategies=list[Strategy],
    )

    def open(self, view: View) -> Hooks:
        self._view = view
        last = view.memory.setdefault(_LAST_RUN, view.now)
        if not isinstance(last, float) or view.now - last < self._interval():
            return Hooks()
        view.memory[_LAST_RUN] = view.now
        pauses = view.memory.setdefault(_PAUSES, Pauses[_Place]())
        assert isinstance(pauses, Pauses)
        pauses.keep(self._is_there)
        self._pauses: Pauses[_Place] = pauses
        self._named: list[tuple[Task, Node]] = []
        known = {LOW_NODE_UTILIZATION: self._low_node_utilization}
        return Hooks(
            victim_tasks=[known[name](Thresholds.read(params)) for name, params in self._strategies() if name in known],
            close=self._pause_moved,
        )

    def _is_there(self, place: _Place) -> bool:
        name, uid, node = place
        job = self._view.jobs.get(name)
        return job is not None and job.uid == uid and node in self._view.nodes_by_name

    def _pause_moved(self) -> None:
        """Named tasks are moved only if an action asked for them and evicted them."""
        moved = {_place(task, node) for task, node in self._named if task.evicting}
        for place in moved:
            self._pauses.begin(place, self._view.now, 2.0 * self._interval())

    def _interval(self) -> float:
        try:
            return durations.seconds(policy.text(self.arguments, "interval", ""))
        except ValueError:
            return DEFAULT_INTERVAL

    def _strategies(self) -> list[tuple[str, Mapping[str, object]]]:
        """Entries that cannot be read are left out; without any there is one default."""
        given = self.arguments.get("strategies")
        entries = [entry for entry in given if isinstance(entry, Mapping)] if isinstance(given, Sequence) else []
        named = [(entry["name"], entry.get("params")) for entry in entries if isinstance(entry.get("name"), str)]
        if not given:
            return [(LOW_NODE_UTILIZATION, {})]
        return [(str(name), params if isinstance(params, Mapping) else {}) for name, params in named]

    def _low_node_utilization(self, thresholds: Thresholds) -> Callable[[Sequence[Task]], Collection[Task]]:
        return lambda _candidates: self._victims(thresholds)

    def _victims(self, thresholds: Thresholds) -> list[Task]:
        """Tasks of busy nodes, busiest first, for which there is room on idle nodes."""
        load = self._loads()
        low = [node for node, percent in load if _is_low(node, percent, thresholds)]
        high = [(node, percent) for node, percent in load if node not in low and (percent > thresholds.high).any()]
        if not low or len(low) == len(load) or not high:
            return []
        idle = {node.name for node in low}
        room = np.zeros(2)
        for node, percent in load:
            if node.name in idle:
                room += (np.array(thresholds.high) - percent) / 100.0 * self._size(node)
        victims: list[Task] = []
        for node, percent in sorted(high, key=lambda item: -float(item[1].sum())):
            victims += self._of_node(node, percent.copy(), room, thresholds)
        return victims

    def _loads(self) -> list[tuple[Node, Floats]]:
        period = policy.text(self.arguments, "metricsPeriod", loads.PERIOD)
        known = loads.of(self._view.options)
        return [
            (node, np.array([load.cpu.get(period, 0.0), load.memory.get(period, 0.0)]))
            for node in self._view.node_list
            if node is not None and (load := known.get(node.name)) is not None
        ]

    def _size(self, node: Node) -> Floats:
        size: Floats = self._view.nodes.allocatable[node.row][list(BASIC)]
        return size

    def _of_node(self, node: Node, percent: Floats, room: Floats, thresholds: Thresholds) -> list[Task]:
        """The least important tasks, until the node is not busy any more or the room (changed here) is used up."""
        victims = []
        size = self._size(node)
        movable = [task for task in _movable(node) if not self._pauses.lasts(_place(task, node), self._view.now)]
        for task in sorted(movable, key=_least_important_first):
            if not (percent >= thresholds.high).any() or (room <= 0.0).any():
                break
            request = task.request[list(BASIC)]
            room -= request
            percent -= np.divide(request * 100.0, size, out=np.zeros(2), where=size > 0.0)
            victims.append(task)
        self._named.extend((task, node) for task in victims)
        return victims


def _place(task: Task, node: Node) -> _Place:
    assert task.job is not None  # others are not movable
    return task.job.id, task.job.uid, node.name


def _is_low(node: Node, percent: Floats, thresholds: Thresholds) -> bool:
    cordoned = node.resource is not None and node.resource.spec.unschedulable
    return not cordoned and bool((percent < thresholds.low).all())


def _movable(node: Node) -> list[Task]:
    return [task for task in node.tasks.values() if task.job is not None and task.status == TaskStatus.RUNNING]


def _least_important_first(task: Task) -> tuple[int, int, str]:
    return task.spec_priority, quality(task), task.key


def quality(task: Task) -> int:
    """The quality-of-service class of the pod: 0 best effort, 1 burstable, 2 guaranteed."""
    spec = task.shape.pod.spec
    containers = (*spec.containers, *spec.init_containers)
    asked = [(container.resources.requests, container.resources.limits) for container in containers]
    if not any(requests or limits for requests, limits in asked):
        return 0
    full = all(
        {"cpu", "memory"} <= limits.keys() and all(requests.get(name, limits[name]) == limits[name] for name in limits)
        for requests, limits in asked
    )
    return 2 if full else 1
