"""deviceshare: parts of GPUs and NPUs, for all families of devices that are on (spec 06 section 29).

Pods without devices cost one question per shape, and nodes that nobody asks about cost nothing (see
:mod:`cluster_devices`). What is chosen for a pod travels with its bind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np

from stromboli.scheduler.core.extensions import BindExtension, merged
from stromboli.scheduler.core.plugin import Filter, Hooks, PlacementRefused, Plugin, Refusals, Scope, Score
from stromboli.scheduler.core.reasons import Reason
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.plugins.deviceshare import (
    configuration,
    mindcluster,
    mindcluster_reports,
    queue_usage,
    vgpu,
    vgpu_metrics,
)
from stromboli.scheduler.plugins.deviceshare.cluster_devices import ClusterDevices
from stromboli.scheduler.plugins.deviceshare.families import Choice, DoesNotFit, Family
from stromboli.scheduler.plugins.deviceshare.gpushare import GpuShareFamily
from stromboli.scheduler.plugins.deviceshare.hami import HamiFamily
from stromboli.scheduler.plugins.deviceshare.mindcluster import MindClusterFamily
from stromboli.scheduler.plugins.deviceshare.settings import DeviceShareArguments, Settings
from stromboli.scheduler.plugins.deviceshare.vgpu import VgpuDevices, VgpuFamily

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Node, Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View

T = TypeVar("T")

MOST_REASONS = 200
"""Refusals are bytes; beyond so many different ones a family's generic reason stands for the rest."""
_NEW = (TaskStatus.ALLOCATED, TaskStatus.PIPELINED)


class DeviceShare(Plugin):
    """Places pods on individual cards, or on slices of cards."""

    name: ClassVar[str] = "deviceshare"
    shape_annotations: ClassVar[frozenset[str]] = vgpu.ANNOTATIONS
    configuration_entries: ClassVar[frozenset[str]] = frozenset({mindcluster_reports.PARAMETERS})
    arguments_model = DeviceShareArguments

    def open(self, view: View) -> Hooks:
        self._view = view
        self._settings = Settings.read(self.arguments)
        self._families = families(view, self._settings)
        if not self._families:
            return Hooks()
        self._cluster = ClusterDevices(view, self._settings)
        self._chosen: dict[str, dict[str, Choice]] = {}
        self._wanted: dict[int, tuple[Family, ...]] = {}
        self._reasons = _Reasons()
        self._measure()
        return Hooks(
            filters=self._filters(),
            scores=self._scores(),
            on_allocate=self._placed,
            on_deallocate=self._removed,
            bind_extension=self._extension,
            held_otherwise=self._held_otherwise if self._settings.vgpu else None,
            shape_labels=self._labels(),
            shape_annotations=frozenset().union(*(family.pod_annotations for family in self._hami())),
            own_resources=frozenset(family.resources.memory for family in self._hami() if family.resources.memory),
        )

    def _hami(self) -> list[HamiFamily]:
        return [family for family in self._families if isinstance(family, HamiFamily)]

    def _labels(self) -> frozenset[str]:
        """Labels that decide about nodes."""
        return frozenset(mindcluster.LABELS if self._settings.mindcluster else ()).union(*self._settings.rules)

    def _filters(self) -> list[Filter]:
        reasons, by_shape, by_job = self._reasons.listed, self._by_shape, self._by_job
        return [
            Filter("devices", reasons, only(by_shape, self._refuse), concerns=by_shape),
            Filter("devices of a group", reasons, only(by_job, self._refuse), scope=Scope.JOB, concerns=by_job),
        ]

    def _scores(self) -> list[Score]:
        if self._settings.weight <= 0:
            return []
        scores = [
            Score("devices", only(self._by_shape, self._rate), concerns=self._by_shape),
            Score("devices of a group", only(self._by_job, self._rate), scope=Scope.JOB, concerns=self._by_job),
        ]
        if self._chips is not None:
            scores.append(Score("chips", self._rate_chips, normalise=self._fullest_first, concerns=self._asks_chips))
        return scores

    @property
    def _chips(self) -> MindClusterFamily | None:
        return next((family for family in self._families if isinstance(family, MindClusterFamily)), None)

    def _measure(self) -> None:
        """Tells about cards before anything is tried out on them."""
        family = next((family for family in self._families if isinstance(family, VgpuFamily)), None)
        if family is not None and vgpu_metrics.is_due(self._view):
            known = self._cluster.known(family)
            vgpu_metrics.measure(
                self._view, [(name, found.cards if isinstance(found, VgpuDevices) else ()) for name, found in known]
            )

    # Who asks

    def _asked_by(self, task: Task) -> tuple[Family, ...]:
        """Families that the pod asks, in the order in which they are asked."""
        asked = self._wanted.get(task.shape.index)
        if asked is None:
            asked = self._wanted[task.shape.index] = tuple(family for family in self._families if family.asks(task))
        return asked

    def _by_job(self, task: Task) -> bool:
        return any(family.depends_on_group(task) for family in self._asked_by(task))

    def _by_shape(self, task: Task) -> bool:
        return bool(self._asked_by(task)) and not self._by_job(task)

    # Nodes

    def _refuse(self, task: Task, rows: Rows) -> Refusals:
        asked = self._asked_by(task)
        refusals = np.zeros(len(rows), dtype=np.uint8)
        for position, node in self._nodes(rows):
            for family in asked:
                outcome = self._cluster.outcome(family, node, task)
                if isinstance(outcome, DoesNotFit):
                    refusals[position] = self._reasons.number(outcome.reason, family.generic)
                    break
        return refusals

    def _rate(self, task: Task, rows: Rows) -> Floats:
        asked = self._asked_by(task)
        scores = np.zeros(len(rows))
        for position, node in self._nodes(rows):
            outcomes = (self._cluster.outcome(family, node, task) for family in asked if family is not self._chips)
            scores[position] = sum(outcome.score for outcome in outcomes if isinstance(outcome, Choice))
        rounded: Floats = np.floor(0.5 + scores) * self._settings.weight
        return rounded

    def _asks_chips(self, task: Task) -> bool:
        return self._chips in self._asked_by(task)

    def _rate_chips(self, task: Task, rows: Rows) -> Floats | None:
        """Idle AI cores, below zero (by one) where the pod gets less than it asks for; NaN on other nodes."""
        chips, column = self._chips, self._view.columns.get(mindcluster.NPU_CORE)
        if chips is None or column is None or chips not in self._asked_by(task):
            return None
        found = np.full(len(rows), np.nan)
        idle = self._view.nodes.idle[rows, column]
        for position, node in self._nodes(rows):
            outcome = self._cluster.outcome(chips, node, task)
            if isinstance(outcome, Choice):
                kept = outcome.score == mindcluster.KEPT_SCORE
                found[position] = max(idle[position], 0.0) if kept else -1.0 - max(idle[position], 0.0)
        return found

    def _fullest_first(self, found: Floats) -> Floats:
        return mindcluster.scores(found) * self._settings.weight

    def _nodes(self, rows: Rows) -> Iterator[tuple[int, Node]]:
        for position, row in enumerate(rows.tolist()):
            node = self._view.node_list[row]
            if node is not None:
                yield position, node

    # Accounting

    def _placed(self, task: Task, node: Node) -> None:
        if task.status not in _NEW:
            self._cluster.restore(self._families, node, task, self._chosen.get(task.uid, {}))
            return
        asked = self._asked_by(task)
        if not asked:
            return
        chosen: dict[str, Choice] = {}
        for family in asked:
            try:
                choice = self._cluster.choose(family, node, task)
            except DoesNotFit as refusal:
                self._cluster.drop(asked, node, task)
                raise PlacementRefused(f"device {family.name} cannot fit task {task.key}: {refusal}") from refusal
            if choice is not None:
                chosen[family.name] = choice
        self._chosen[task.uid] = chosen

    def _removed(self, task: Task, node: Node) -> None:
        self._cluster.drop(self._families, node, task)
        if task.status != TaskStatus.RELEASING:
            self._chosen.pop(task.uid, None)

    def _extension(self, task: Task, node: Node) -> BindExtension | None:
        """What the cycle has chosen for a pod that it binds."""
        chosen = self._chosen.get(task.uid)
        if not chosen:
            return None
        return merged(self._written(family, chosen, task, node) for family in self._asked_by(task))

    def _held_otherwise(self) -> dict[str, dict[str, float]]:
        return queue_usage.differences(self._view, self._difference)

    def _difference(self, task: Task) -> dict[str, float] | None:
        """What a task has been given of cards, less what it asks for."""
        family = next((family for family in self._asked_by(task) if isinstance(family, VgpuFamily)), None)
        if family is None:
            return None
        chosen = self._chosen.get(task.uid, {}).get(family.name)
        holding = chosen.holding if chosen is not None else family.recorded(task)
        columns = self._view.columns
        return {
            resource: amount - (0.0 if (column := columns.get(resource)) is None else float(task.request[column]))
            for resource, amount in family.counted(holding).items()
            if holding
        }

    def _written(self, family: Family, chosen: dict[str, Choice], task: Task, node: Node) -> BindExtension | None:
        choice = chosen.get(family.name)
        if choice is None:
            return None
        lock = family.lock(task, node.name)
        annotations = family.annotations(choice, node.name, self._view.now)
        return BindExtension(dict(annotations), (lock,) if lock is not None else ())


def only(concerned: Callable[[Task], bool], ask: Callable[[Task, Rows], T]) -> Callable[[Task, Rows], T | None]:
    """The question, for those whom it concerns."""
    return lambda task, rows: ask(task, rows) if concerned(task) else None


def families(view: View, settings: Settings) -> list[Family]:
    """Families that are on, in the order in which they are asked."""
    found: list[Family] = []
    if settings.sharing or settings.number:
        found.append(GpuShareFamily(settings))
    if settings.vgpu:
        found.append(VgpuFamily(settings, configuration.of(view, settings).nvidia))
    if settings.mindcluster:
        parameters = mindcluster_reports.Parameters.read(view)
        found.append(MindClusterFamily(parameters, mindcluster_reports.of(view, parameters)))
    if settings.hami:
        found.extend(HamiFamily(settings, kind) for kind in configuration.of(view, settings).vnpus.configs)
    return found


class _Reasons:
    """Reasons by number, as filters want them."""

    def __init__(self) -> None:
        self.listed: list[Reason] = []
        self._numbers: dict[Reason, int] = {}

    def number(self, reason: Reason, generic: Reason) -> int:
        number = self._numbers.get(reason)
        if number is not None:
            return number
        if len(self.listed) >= MOST_REASONS and reason != generic:
            return self.number(generic, generic)
        self.listed.append(reason)
        self._numbers[reason] = len(self.listed)
        return len(self.listed)
