"""Nodes and jobs as rows of arrays.

``NodeTable`` keeps one slab ``[row, kind, column]``, so that a placement is one addition of a small contiguous block,
and a question about all nodes is one operation for each column that matters. Rows are in node-list order; a deleted
node leaves a dead row that ``compact`` removes between cycles. Writers append to ``log``; readers remember how far they
have read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from stromboli.scheduler.core.columns import Floats, widened

Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]


class Kind(IntEnum):
    """The layers of a node's state."""

    ALLOCATABLE = 0
    IDLE = 1
    USED = 2
    RELEASING = 3
    PIPELINED = 4
    FUTURE = 5
    """idle + releasing - pipelined (spec 04 section 13.2); may be negative"""
    REQUESTED = 6
    """requests of the pods that filters and scores see on the node (spec 06 section 4.5): placed in this cycle
    included, evicted in this cycle left out; its ``pods`` column is the pod count"""
    NONZERO = 7
    """as REQUESTED, cpu and memory only, with the defaults of spec 06 section 15.1 for containers without requests"""


class NodeTable:
    """Arrays over all nodes that have a Node object."""

    def __init__(self, width: int) -> None:
        self.count = 0
        """Rows in use, dead ones included."""
        self.log: list[tuple[int, Floats | None, int]] = []
        """What was written, in order: (row, block, times the block was added: 1 or -1), or (row, None, 0) for more."""
        self.generation = 0
        """Changes when row numbers change meaning: then nothing derived from rows may be kept."""
        self.looks = 0
        """Moves when rows come or go, and when labels, taints, images or the cordon of a node change."""
        self._seen = 0
        self._state: Floats = _slab(64, width)
        self._live: Bools = np.zeros(64, dtype=bool)

    @property
    def live(self) -> Bools:
        return self._live[: self._seen]

    @property
    def allocatable(self) -> Floats:
        return self._state[: self._seen, Kind.ALLOCATABLE]

    @property
    def idle(self) -> Floats:
        return self._state[: self._seen, Kind.IDLE]

    @property
    def used(self) -> Floats:
        return self._state[: self._seen, Kind.USED]

    @property
    def releasing(self) -> Floats:
        return self._state[: self._seen, Kind.RELEASING]

    @property
    def pipelined(self) -> Floats:
        return self._state[: self._seen, Kind.PIPELINED]

    @property
    def future(self) -> Floats:
        return self._state[: self._seen, Kind.FUTURE]

    @property
    def requested(self) -> Floats:
        return self._state[: self._seen, Kind.REQUESTED]

    @property
    def nonzero(self) -> Floats:
        return self._state[: self._seen, Kind.NONZERO]

    @property
    def state(self) -> Floats:
        """``[kind, row, column]`` up to ``count``, for tests and dumps."""
        return self._state[: self.count].swapaxes(0, 1)

    def total(self, amounts: Floats) -> Floats:
        """The sum of a layer over all nodes, dead rows being zero; ``sum(axis=0)`` takes five times as long."""
        total: Floats = np.einsum("ij->j", amounts)
        return total

    def append(self) -> int:
        """A new live row of zeros, last in node-list order."""
        row = self.count
        if row == len(self._state):
            self._grow()
        self._state[row] = 0.0
        self._live[row] = True
        self.count += 1
        self.looks += 1
        self._seen = self.count
        self.log.append((row, None, 0))
        return row

    def kill(self, row: int) -> None:
        """Takes a row out of use; it fits nothing until ``compact`` removes it."""
        self._state[row] = 0.0
        self._live[row] = False
        self.log.append((row, None, 0))
        self.generation += 1
        self.looks += 1

    def touch(self, row: int) -> None:
        """Notes that something about a node has changed that is not in its row."""
        self.log.append((row, None, 0))

    def reset(self, row: int, allocatable: Floats) -> None:
        """An empty node with this much allocatable."""
        self._state[row] = 0.0
        width = len(allocatable)
        for kind in (Kind.ALLOCATABLE, Kind.IDLE, Kind.FUTURE):
            self._state[row, kind, :width] = allocatable
        self.log.append((row, None, 0))

    def add(self, row: int, delta: Floats) -> None:
        """Adds a block ``[kind, column]`` to one row."""
        cells = self._state[row]  # with an index on the left of "+=" the sums would be written a second time
        cells += delta
        self.log.append((row, delta, 1))

    def subtract(self, row: int, delta: Floats) -> None:
        """The exact reverse of ``add``: amounts are whole numbers far below 2**53."""
        cells = self._state[row]
        cells -= delta
        self.log.append((row, delta, -1))

    @contextmanager
    def imagined(self, rows: Rows, delta: Floats, levels: int, *, first_level: int = 0) -> Iterator[Rows]:
        """Rows beyond the end, for as long as the context lasts: each node with more and more blocks added, in turn."""
        first, last = self.count, self.count + len(rows) * levels
        while last > len(self._state):
            self._grow()
        steps = np.arange(first_level, first_level + levels, dtype=np.float64)[:, None, None]
        imagined = self._state[rows, None] + delta * steps
        self._state[first:last] = imagined.reshape(last - first, *delta.shape)
        self._live[first:last] = np.repeat(self._live[rows], levels)
        self._seen = last
        try:
            yield np.arange(first, last)
        finally:
            self._seen = first
            self._live[first:last] = False

    def _grow(self) -> None:
        grown = _slab(2 * len(self._state), self._state.shape[2])
        grown[: len(self._state)] = self._state
        self._state = grown
        self._live = np.concatenate([self._live, np.zeros_like(self._live)])

    def widen(self, width: int) -> None:
        """Makes room for more resource columns."""
        state, self._state = self._state, _slab(len(self._state), width)
        self._state[..., : state.shape[2]] = state

    def clear_columns(self, columns: Sequence[int]) -> None:
        """Nothing is listed, used or asked for in these columns any more."""
        self._state[:, :, list(columns)] = 0.0

    def compact(self) -> Rows:
        """Removes dead rows, keeping order; answers for each old row its new one, or -1."""
        keep = np.nonzero(self.live)[0]
        renumbered = np.full(self.count, -1, dtype=np.intp)
        renumbered[keep] = np.arange(len(keep))
        self._state[: len(keep)] = self._state[keep]
        self._live[: self.count] = False
        self._live[: len(keep)] = True
        self.count = self._seen = len(keep)
        self.log.clear()
        self.generation += 1
        self.looks += 1
        return renumbered


def _slab(rows: int, width: int) -> Floats:
    """Zeros for so many rows, with a layer between them that is not used.

    Otherwise rows would be a power of two apart, and one column of many rows would find room in few places of the
    processor's cache.
    """
    return np.zeros((rows, len(Kind) + 1, width))[:, : len(Kind)]


class JobTable:
    """Arrays over jobs: what plugins sum or compare over all jobs when a cycle opens.

    Rows of jobs that are gone are reused. Only rows with ``active`` are jobs of the session.
    """

    def __init__(self, width: int) -> None:
        self.allocated: Floats = np.zeros((64, width))
        """Requests of tasks in charged statuses (allocated, or Pipelined in this cycle)."""
        self.minimum: Floats = np.zeros((64, width))
        """``spec.minResources``; zeros when absent, see ``has_minimum``."""
        self.gated: Floats = np.zeros((64, width))
        """Requests of gated tasks, except those gated by the queue-allocation gate alone."""
        self.has_minimum: Bools = np.zeros(64, dtype=bool)
        self.minimum_named: Bools = np.zeros((64, width), dtype=bool)
        """Which columns ``spec.minResources`` names."""
        self.active: Bools = np.zeros(64, dtype=bool)
        self.allocated_tasks: npt.NDArray[np.int64] = np.zeros(64, dtype=np.int64)
        self.min_member: npt.NDArray[np.int64] = np.zeros(64, dtype=np.int64)
        self.phase: npt.NDArray[np.int8] = np.zeros(64, dtype=np.int8)
        """``records.Phase`` of the PodGroup."""
        self.queue: npt.NDArray[np.intp] = np.full(64, -1, dtype=np.intp)
        """``Queue.index`` of the job's queue."""
        self._free: list[int] = []
        self._next = 0

    @property
    def count(self) -> int:
        """Rows ever used: every array may be cut to this length."""
        return self._next

    def take(self) -> int:
        """A cleared row."""
        if self._free:
            row = self._free.pop()
            self._clear(row)
            return row
        if self._next == len(self.active):
            self._grow()
        self._next += 1
        return self._next - 1

    def release(self, row: int) -> None:
        """Gives a row back."""
        self._clear(row)
        self._free.append(row)

    def widen(self, width: int) -> None:
        """Makes room for more resource columns."""
        for name in ("allocated", "minimum", "gated"):
            setattr(self, name, widened(getattr(self, name), width))
        self.minimum_named = widened(self.minimum_named.astype(np.float64), width).astype(bool)

    def clear_columns(self, columns: Sequence[int]) -> None:
        """Nothing is asked for in these columns any more."""
        for array in (self.allocated, self.minimum, self.gated, self.minimum_named):
            array[:, list(columns)] = 0

    def _clear(self, row: int) -> None:
        for array in (self.allocated, self.minimum, self.gated):
            array[row] = 0.0
        self.minimum_named[row] = False
        self.has_minimum[row] = self.active[row] = False
        self.allocated_tasks[row] = self.min_member[row] = self.phase[row] = 0
        self.queue[row] = -1

    def _grow(self) -> None:
        for name in (
            *("allocated", "minimum", "gated", "has_minimum", "minimum_named", "active"),
            *("allocated_tasks", "min_member", "phase", "queue"),
        ):
            array = getattr(self, name)
            fill = np.full_like(array, -1) if name == "queue" else np.zeros_like(array)
            setattr(self, name, np.concatenate([array, fill]))
