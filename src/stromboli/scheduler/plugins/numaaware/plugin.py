"""numa-aware: containers that must have their cores and devices on few NUMA nodes.

What a node answers (from the records of :mod:`records`) is worked out once for each kind of node (layout, free CPUs,
policy) and kept; nodes that are equal cost a dictionary lookup. Pods that are not Guaranteed cost one question per
shape.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from stromboli.api import names
from stromboli.scheduler.core import policy
from stromboli.scheduler.core.extensions import BindExtension
from stromboli.scheduler.core.plugin import Filter, Hooks, PlacementRefused, Plugin, Refusals, Score
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.plugins import arguments
from stromboli.scheduler.plugins.numaaware import records
from stromboli.scheduler.plugins.numaaware.fitting import Fit, fit
from stromboli.scheduler.plugins.numaaware.hints import NONE
from stromboli.scheduler.plugins.numaaware.layouts import NOTHING, Cpus
from stromboli.scheduler.plugins.numaaware.pods import is_guaranteed, whole_cpus
from stromboli.scheduler.plugins.numaaware.records import STATIC, NumaNode

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Node, Shape, Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View

FULL = 100.0
MOST_REASONS = 250
"""Refusals are bytes; more reasons than this in one cycle share the last one."""
NO_INFO = Reason("numa info is empty", Code.ERROR)
NOT_STATIC = Reason("cpu manager policy isn't static", Code.ERROR)
NO_SETS = Reason("no topo information", Code.ERROR)
NO_CPUS = Reason("cpu allocatable map is empty", Code.ERROR)
_NEW = (TaskStatus.ALLOCATED, TaskStatus.PIPELINED)


class NumaAware(Plugin):
    """Filters and ranks nodes for Guaranteed pods by what their CPU and topology managers would do."""

    name: ClassVar[str] = "numa-aware"
    shape_annotations: ClassVar[frozenset[str]] = frozenset({names.NUMA_TOPOLOGY_POLICY})
    arguments_model = arguments.model("NumaAwareArguments", weight=arguments.Integer)

    def open(self, view: View) -> Hooks:
        self._view = view
        self._weight = policy.integer(self.arguments, "weight", 1)
        self._records = records.of(view)
        self._reasons: list[Reason] = []
        self._numbers: dict[Reason, int] = {}
        self._requests: dict[int, tuple[int, ...] | None] = {}
        self._given: dict[str, Cpus] = {}
        return Hooks(
            filters=[Filter("numa", self._reasons, self._refuse, concerns=self._concerned)],
            scores=[Score("numa", self._rate, normalise=self._fewest_first, concerns=self._rated)],
            on_allocate=self._placed,
            on_deallocate=self._removed,
            bind_extension=self._decision,
        )

    def _request(self, shape: Shape) -> tuple[int, ...] | None:
        """CPUs of their own for each container; None when the pod is not Guaranteed."""
        if shape.index not in self._requests:
            spec = shape.pod.spec
            counts = tuple(map(whole_cpus, spec.containers)) if is_guaranteed(spec) else None
            self._requests[shape.index] = counts
        return self._requests[shape.index]

    @staticmethod
    def _policy(task: Task) -> str:
        written = task.annotations.get(names.NUMA_TOPOLOGY_POLICY, "")
        return "" if written == NONE else written

    # Filter

    def _concerned(self, task: Task) -> bool:
        return self._request(task.shape) is not None and bool(self._policy(task) or self._records.nodes)

    def _refuse(self, task: Task, rows: Rows) -> Refusals | None:
        wanted, counts = self._policy(task), self._request(task.shape)
        if counts is None:
            return None
        node_list, known = self._view.node_list, self._records.nodes
        refusals = np.zeros(len(rows), dtype=np.uint8)
        for position, row in enumerate(rows.tolist()):
            node = node_list[row]
            if node is not None:
                reason = self._reason(task, known.get(node.name), wanted, counts)
                refusals[position] = 0 if reason is None else self._number(reason)
        return refusals

    def _reason(self, task: Task, known: NumaNode | None, wanted: str, counts: tuple[int, ...]) -> Reason | None:
        if wanted:
            reason = _unsuitable(known, wanted)
            if reason is not None:
                return reason
        if known is None or not _manages(known):
            return None
        refused = self._fit(known, counts).refused
        if refused is None:
            return None
        container = task.shape.pod.spec.containers[refused].name
        return Reason(f"container {container} cannot be assigned by numa", Code.UNRESOLVABLE)

    @staticmethod
    def _fit(known: NumaNode, counts: tuple[int, ...]) -> Fit:
        return fit(known.layout, known.available, known.topology_policy, counts)

    def _number(self, reason: Reason) -> int:
        number = self._numbers.get(reason)
        if number is None:
            if len(self._reasons) < MOST_REASONS:
                self._reasons.append(reason)
            number = self._numbers[reason] = len(self._reasons)
        return number

    # Score

    def _rated(self, task: Task) -> bool:
        return bool(self._policy(task)) and self._request(task.shape) is not None

    def _rate(self, task: Task, rows: Rows) -> Floats | None:
        """How many NUMA nodes the pod would be spread over."""
        counts = self._request(task.shape)
        if counts is None or not self._policy(task):
            return None
        found = np.zeros(len(rows))
        for position, row in enumerate(rows.tolist()):
            node = self._view.node_list[row]
            known = self._records.nodes.get(node.name) if node is not None else None
            if known is not None and _manages(known):
                found[position] = records.numa_count(known.layout, self._fit(known, counts).cpus)
        return found

    def _fewest_first(self, counts: Floats) -> Floats:
        most = counts.max(initial=0.0)
        scores: Floats = FULL - np.floor(FULL * counts / most) if most else np.full(len(counts), FULL)
        return scores * self._weight

    # Accounting

    def _placed(self, task: Task, node: Node) -> None:
        counts = self._request(task.shape)
        known = self._records.nodes.get(node.name) if counts else None
        if known is None or counts is None or not _manages(known):
            return
        is_new = task.status in _NEW
        cpus = self._assigned(task, known, counts) if is_new else self._given.pop(task.uid, NOTHING)
        if cpus:
            self._records.take(task, node, cpus)

    def _assigned(self, task: Task, known: NumaNode, counts: tuple[int, ...]) -> Cpus:
        found = self._fit(known, counts)
        if found.refused is not None:
            raise PlacementRefused(f"no CPUs can be assigned to {task.key} by numa")
        return found.cpus

    def _removed(self, task: Task, node: Node) -> None:
        cpus = self._records.give_back(task.uid)
        if task.status == TaskStatus.RELEASING and cpus:
            self._given[task.uid] = cpus

    def _decision(self, task: Task, node: Node) -> BindExtension | None:
        """What the pod gets of each NUMA node, for the node's side and for restarts."""
        assignment, known = self._records.in_flight.get(task.uid), self._records.nodes.get(node.name)
        if assignment is None or known is None:
            return None
        decision = {"numa": records.resources_by_numa(known.layout.per_numa(assignment.cpus))}
        return BindExtension({names.TOPOLOGY_DECISION: json.dumps(decision, separators=(",", ":"))})


def _unsuitable(known: NumaNode | None, wanted: str) -> Reason | None:
    """Why a node cannot take a task with a policy of its own."""
    if known is None:
        return NO_INFO
    if known.cpu_policy != STATIC:
        return NOT_STATIC
    if known.topology_policy != wanted:
        text = f"task topology policy[{wanted}] is different with node[{known.topology_policy}]"
        return Reason(text, Code.ERROR)
    if not known.free:
        return NO_SETS
    return None if known.free.get(records.CPU) else NO_CPUS


def _manages(known: NumaNode) -> bool:
    """Whether the node's kubelet aligns CPUs at all."""
    return known.cpu_policy == STATIC and known.topology_policy not in ("", NONE)
