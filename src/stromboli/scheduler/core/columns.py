"""Resource names as columns: the one place where names of resources become array positions.

Units are those of spec 04 section 8.1: cpu in milli, memory in bytes, ``pods`` in pods, every other scalar in milli.
Columns only ever grow; ``width`` is the allocated width, so that arrays are widened rarely and all at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CPU = 0
MEMORY = 1
PODS = 2
EPSILON = 0.1
"""Resource amounts closer than this are equal (spec 04, introduction)."""


class Columns:
    """Interns resource names; the first three columns are always cpu, memory and pods."""

    def __init__(self, width: int = 8) -> None:
        self.names: list[str] = ["cpu", "memory", "pods"]
        self.width = width
        self._index = {name: column for column, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def get(self, name: str) -> int | None:
        """The column of a known resource, else None."""
        return self._index.get(name)

    def intern(self, name: str) -> int:
        """The column of a resource, made if new. The owner of the arrays must widen them when ``width`` has grown."""
        column = self._index.get(name)
        if column is None:
            column = len(self.names)
            self._index[name] = column
            self.names.append(name)
            while len(self.names) > self.width:
                self.width *= 2
        return column

    def vector(self, amounts: Mapping[str, float], missing: float = 0.0) -> Floats:
        """An array of the present width from amounts in internal units; names not given hold ``missing``."""
        columns = [self.intern(name) for name in amounts]
        vector = np.full(self.width, missing)
        vector[columns] = list(amounts.values())
        return vector

    def amounts(self, vector: Floats, columns: Iterable[int] | None = None) -> dict[str, float]:
        """The non-zero components by name (cpu and memory always), or exactly those of ``columns``."""
        if columns is not None:
            return {self.names[column]: float(vector[column]) for column in columns}
        known = min(len(self.names), len(vector))
        return {self.names[c]: float(vector[c]) for c in range(known) if vector[c] or c in (CPU, MEMORY)}

    def requested(self, vector: Floats) -> tuple[int, ...]:
        """Columns with an amount that counts (at least epsilon)."""
        return tuple(int(c) for c in np.nonzero(vector >= EPSILON)[0])


def widened(array: Floats, width: int) -> Floats:
    """The array with its last axis padded with zeros to ``width``; the array itself when it is wide enough."""
    missing = width - array.shape[-1]
    if missing <= 0:
        return array
    return np.concatenate([array, np.zeros((*array.shape[:-1], missing))], axis=-1)


def fits_within(amount: Floats, available: Floats) -> npt.NDArray[np.bool_]:
    """Element-wise less-or-equal with epsilon (spec 04 section 8.3)."""
    return np.asarray(amount < available + EPSILON)
