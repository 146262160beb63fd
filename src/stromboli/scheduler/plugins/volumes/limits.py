"""How many CSI volumes a node can attach (spec 06 section 17.7).

A volume that several pods of a node use is attached once. Which volumes are on which nodes is read when first asked for
and then follows the placements of the cycle: counts per driver are arrays over rows, and for each volume it is known
where it is. A cluster without limits, and a pod without volumes, pay nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from stromboli.api import core
from stromboli.scheduler.core.attaching import IGNORED
from stromboli.scheduler.core.plugin import Refusals
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.volumes import VolumeProblem
from stromboli.scheduler.plugins.volumes.handles import Handle, handles_of, migrated_plugins, volume_handle

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Node, Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View

TOO_MANY = Reason("node(s) exceed max volume count", Code.UNSCHEDULABLE)
NO_LIMIT = np.iinfo(np.int64).max

Numbers = npt.NDArray[np.int64]


class _Limits:
    """Per driver how many volumes each row can attach, and which rows have moved which plugins to CSI."""

    def __init__(self, view: View) -> None:
        self.by_driver: dict[str, Numbers] = {}
        self._migrated: defaultdict[str, set[int]] = defaultdict(set)
        more = view.options.get("ignored-provisioners")
        ignored = {*IGNORED, *(more if isinstance(more, Sequence) else ())}
        for each in view.objects.all(core.CSINode).values():
            node = view.nodes_by_name.get(each.name)
            if node is None or node.row < 0:
                continue
            for plugin in migrated_plugins(each):
                self._migrated[plugin].add(node.row)
            for driver in each.spec.drivers:
                count = driver.allocatable.count if driver.allocatable is not None else None
                if count is not None and driver.name not in ignored:
                    limits = self.by_driver.setdefault(driver.name, np.full(view.nodes.count, NO_LIMIT))
                    limits[node.row] = count

    def counts_on(self, handle: Handle, row: int) -> bool:
        """Whether a volume is a CSI volume on a row."""
        return not handle.plugin or row in self._migrated[handle.plugin]

    def where_counted(self, handle: Handle, rows: Rows) -> npt.NDArray[np.bool_]:
        """As ``counts_on`` for many rows."""
        if not handle.plugin:
            return np.ones(len(rows), dtype=bool)
        return np.isin(rows, list(self._migrated[handle.plugin]))


class _Attached:
    """Which volumes are on which rows, and how many of each driver are on each row."""

    def __init__(self, limits: _Limits, count: int) -> None:
        self._limits = limits
        self._count = count
        self.rows: defaultdict[Handle, Counter[int]] = defaultdict(Counter)
        self.numbers: dict[str, Numbers] = {}

    def add(self, handle: Handle, row: int, users: int = 1) -> None:
        """So many more users of a volume on a row; fewer when negative."""
        if handle.driver not in self._limits.by_driver or not self._limits.counts_on(handle, row):
            return
        by_row = self.rows[Handle(handle.driver, handle.id)]
        before = by_row[row]
        by_row[row] = before + users
        if (before > 0) != (by_row[row] > 0):
            numbers = self.numbers.setdefault(handle.driver, np.zeros(self._count, dtype=np.int64))
            numbers[row] += 1 if users > 0 else -1

    def where(self, handle: Handle, rows: Rows) -> npt.NDArray[np.bool_]:
        """Rows that a volume is on."""
        by_row = self.rows.get(Handle(handle.driver, handle.id))
        return (
            np.isin(rows, [row for row, users in by_row.items() if users > 0]) if by_row else np.zeros(len(rows), bool)
        )


@dataclass
class VolumeLimits:
    """The filter and its books. Call :meth:`placed` and :meth:`removed` from the plugin's accounting hooks."""

    view: View
    reasons: list[Reason] = field(default_factory=lambda: [TOO_MANY])
    _evicted: set[str] = field(default_factory=set)
    _known: _Attached | None = None

    @staticmethod
    def concerns(task: Task) -> bool:
        """Whether the pod has volumes that may count."""
        return any(volume.has_source for volume in task.shape.pod.spec.volumes)

    def refuse(self, task: Task, rows: Rows) -> Refusals | None:
        """Rows on which the pod's volumes would be too many."""
        try:
            handles = set(handles_of(task, self.view.objects, strict=True))
        except VolumeProblem as problem:
            reason = Reason(str(problem), Code.UNRESOLVABLE)
            if reason not in self.reasons:
                self.reasons.append(reason)
            return np.full(len(rows), self.reasons.index(reason) + 1, dtype=np.uint8)
        limited = {handle.driver for handle in handles} & self._limits.by_driver.keys()
        if not limited:
            return None
        refused = np.zeros(len(rows), dtype=bool)
        for driver in limited:
            refused |= self._exceeds(driver, [each for each in handles if each.driver == driver], rows)
        return refused.astype(np.uint8)

    def _exceeds(self, driver: str, handles: Iterable[Handle], rows: Rows) -> npt.NDArray[np.bool_]:
        limit = self._limits.by_driver[driver][rows]
        attached = self._attached()
        present = attached.numbers.get(driver)
        added = np.zeros(len(rows), dtype=np.int64)
        for handle in handles:
            added += self._limits.where_counted(handle, rows) & ~attached.where(handle, rows)
        total = added if present is None else present[rows] + added
        exceeds: npt.NDArray[np.bool_] = (added > 0) & (total > limit)
        return exceeds

    # Books

    def placed(self, task: Task, node: Node) -> None:
        """A task was placed on a node in this cycle, or its eviction was undone."""
        self._evicted.discard(task.uid)
        self._count(task, node, 1)

    def removed(self, task: Task, node: Node) -> None:
        """A task was evicted in this cycle, or its placement was undone."""
        if task.status == TaskStatus.RELEASING:
            self._evicted.add(task.uid)
        self._count(task, node, -1)

    def _count(self, task: Task, node: Node, users: int) -> None:
        if self._known is not None and self.concerns(task):
            self._add(self._known, task, node.row, users)

    def _add(self, attached: _Attached, task: Task, row: int, users: int) -> None:
        for handle in set(handles_of(task, self.view.objects, strict=False)):
            attached.add(handle, row, users)

    @cached_property
    def _limits(self) -> _Limits:
        return _Limits(self.view)

    def _attached(self) -> _Attached:
        if self._known is None:
            self._known = _Attached(self._limits, self.view.nodes.count)
            for node in self.view.node_list:
                if node is not None:
                    for task in node.tasks.values():
                        if task.uid not in self._evicted and self.concerns(task):
                            self._add(self._known, task, node.row, 1)
            self._add_attachments(self._known)
        return self._known

    def _add_attachments(self, attached: _Attached) -> None:
        """Volumes that are attached, or about to be, although no pod of the node is known to use them."""
        objects = self.view.objects
        for attachment in objects.all(core.VolumeAttachment).values():
            node = self.view.nodes_by_name.get(attachment.spec.node_name)
            volume = objects.get(core.PersistentVolume, attachment.spec.source.persistent_volume_name or "")
            handle = volume_handle(volume) if volume is not None else None
            if node is not None and node.row >= 0 and handle is not None:
                attached.add(handle, node.row)
