"""Resource vectors: cpu in milli, memory in bytes, scalars in milli, ``pods`` in units (spec 04 section 8).

Values are floats and comparisons forgive :data:`EPSILON`, because queue shares are fractions. A vector is immutable;
every operation returns a new one. The scalar map may be absent or present and empty, and some operations tell the two
apart. These quirks are part of the behaviour that users' queues depend on, so they are kept and named where they are.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from stromboli.api import names, quantities, resourcenames

EPSILON = 0.1
"""Amounts that differ by less are equal, amounts below are nothing."""

MAX_FLOAT = sys.float_info.max
MAX_INT = 2**63 - 1

_INFINITE_DIFFERENCE = -1.0


class Dimension(Enum):
    """What a scalar that one side does not name counts as."""

    ZERO = "Zero"
    INFINITY = "Infinity"


class InsufficientResource(ArithmeticError):
    """More was subtracted than there is."""


@dataclass(frozen=True, slots=True)
class ResourceVector:
    """An amount of every resource.

    ``max_tasks`` is the whole number of ``pods`` of the list the vector came from; arithmetic does not touch it.
    """

    cpu: float = 0.0
    memory: float = 0.0
    scalars: Mapping[str, float] | None = None
    max_tasks: int = 0

    @classmethod
    def from_list(
        cls, resources: Mapping[str, quantities.Quantity], ignored: Collection[str] = frozenset()
    ) -> ResourceVector:
        """The amounts of a resource list. Names in ``ignored``, ``count/`` and other non-resources are dropped.

        Raises :class:`~stromboli.api.quantities.BadQuantity`.
        """
        if not resources:
            return EMPTY
        cpu = memory = 0.0
        max_tasks = 0
        scalars: dict[str, float] = {}
        for name, quantity in resources.items():
            if name == names.CPU:
                cpu = float(quantities.milli(quantity))
            elif name == names.MEMORY:
                memory = float(quantities.value(quantity))
            elif name == names.PODS:
                max_tasks = quantities.value(quantity)
                scalars[name] = float(max_tasks)
            elif name == names.EPHEMERAL_STORAGE or _counts(name, ignored):
                scalars[name] = float(quantities.milli(quantity))
        return cls(cpu, memory, scalars or None, max_tasks)

    @classmethod
    def infinite(cls) -> ResourceVector:
        """More cpu and memory than anything; no scalars."""
        return cls(MAX_FLOAT, MAX_FLOAT, None, MAX_INT)

    # --- Reading ---------------------------------------------------------------------------------------------------

    def get(self, name: str) -> float:
        """Amount of one resource; 0 when absent."""
        if name == names.CPU:
            return self.cpu
        if name == names.MEMORY:
            return self.memory
        return (self.scalars or {}).get(name, 0.0)

    def names(self) -> list[str]:
        """Resources of which there is something: cpu, memory, then scalars by name."""
        return [name for name, amount in self._components() if amount >= EPSILON]

    def is_empty(self) -> bool:
        """Whether there is nothing but possibly ``pods``."""
        return not any(name != names.PODS for name in self.names())

    def is_zero(self, name: str) -> bool:
        """Whether there is nothing of a resource. Raises KeyError for a scalar that a present map does not name."""
        if name in (names.CPU, names.MEMORY) or self.scalars is None:
            return self.get(name) < EPSILON
        return self.scalars[name] < EPSILON

    def to_list(self) -> dict[str, str]:
        """The vector as an API resource list: cpu and scalars decimal, memory binary, fractions cut off."""
        resources = {
            names.CPU: quantities.format(quantities.thousandths(int(self.cpu))),
            names.MEMORY: quantities.format(int(self.memory), "binary"),
        }
        for name, amount in sorted((self.scalars or {}).items()):
            exact = int(amount) if name == names.PODS else quantities.thousandths(int(amount))
            resources[name] = quantities.format(exact)
        return resources

    def __str__(self) -> str:
        """``cpu 1000.00, memory 2048.00, nvidia.com/gpu maxInt``."""
        return ", ".join(f"{name} {_text(amount)}" for name, amount in self._components())

    # --- Arithmetic ------------------------------------------------------------------------------------------------

    def __add__(self, other: ResourceVector) -> ResourceVector:
        """Component-wise sum; creates missing scalars."""
        scalars = self.scalars
        if other.scalars:
            sums = dict(scalars or {})
            for name, amount in other.scalars.items():
                sums[name] = sums.get(name, 0.0) + amount
            scalars = sums
        return ResourceVector(self.cpu + other.cpu, self.memory + other.memory, scalars, self.max_tasks)

    def __sub__(self, other: ResourceVector) -> ResourceVector:
        """Component-wise difference. Raises :class:`InsufficientResource` unless ``other`` is less or equal (Zero)."""
        if not other.less_equal(self, Dimension.ZERO):
            raise InsufficientResource(f"cannot take <{other}> out of <{self}>")
        return self.minus(other)

    def minus(self, other: ResourceVector) -> ResourceVector:
        """Component-wise difference, possibly negative.

        Quirk: without a scalar map here, the other's scalars are ignored; with one, missing names start from 0.
        """
        scalars = self.scalars
        if scalars is not None and other.scalars:
            rest = dict(scalars)
            for name, amount in other.scalars.items():
                rest[name] = rest.get(name, 0.0) - amount
            scalars = rest
        return ResourceVector(self.cpu - other.cpu, self.memory - other.memory, scalars, self.max_tasks)

    def __mul__(self, factor: float) -> ResourceVector:
        """Every component times ``factor``."""
        scalars = self.scalars
        if scalars is not None:
            scalars = {name: amount * factor for name, amount in scalars.items()}
        return ResourceVector(self.cpu * factor, self.memory * factor, scalars, self.max_tasks)

    def raised_to(self, other: ResourceVector) -> ResourceVector:
        """Component-wise maximum, over the scalars of both."""
        scalars = self.scalars
        if other.scalars is not None:
            highest = dict(scalars or {})
            for name, amount in other.scalars.items():
                highest[name] = max(highest.get(name, 0.0), amount)
            scalars = highest
        return ResourceVector(max(self.cpu, other.cpu), max(self.memory, other.memory), scalars, self.max_tasks)

    def lowered_to(self, other: ResourceVector, missing: Dimension) -> ResourceVector:
        """Component-wise minimum, over the scalars of this one; a scalar missing in ``other`` becomes 0 or stays."""
        scalars = self.scalars
        if scalars is not None:
            theirs = other.scalars or {}
            if missing is Dimension.ZERO:
                scalars = {name: min(amount, theirs.get(name, 0.0)) for name, amount in scalars.items()}
            else:
                scalars = {name: min(amount, theirs.get(name, amount)) for name, amount in scalars.items()}
        return ResourceVector(min(self.cpu, other.cpu), min(self.memory, other.memory), scalars, self.max_tasks)

    def difference(self, other: ResourceVector, missing: Dimension) -> tuple[ResourceVector, ResourceVector]:
        """``(increased, decreased)``: by how much this is above and below ``other``.

        Under Infinity a scalar that this one misses is reported as -1 in *increased*, one that the other misses as -1
        in *decreased*. A scalar that is equal appears in *decreased* with 0.
        """
        ours, theirs = self.scalars or {}, other.scalars or {}
        increased: dict[str, float] = {}
        decreased: dict[str, float] = {}
        for name in _union(ours, theirs):
            if missing is Dimension.INFINITY and name not in ours:
                increased[name] = _INFINITE_DIFFERENCE
            elif missing is Dimension.INFINITY and name not in theirs:
                decreased[name] = _INFINITE_DIFFERENCE
            elif (above := ours.get(name, 0.0) - theirs.get(name, 0.0)) > 0:
                increased[name] = above
            else:
                decreased[name] = -above
        cpu, memory = self.cpu - other.cpu, self.memory - other.memory
        return (
            ResourceVector(max(cpu, 0.0), max(memory, 0.0), increased),
            ResourceVector(max(-cpu, 0.0), max(-memory, 0.0), decreased),
        )

    # --- Comparisons with a default for missing scalars (section 8.3) ----------------------------------------------

    def less(self, other: ResourceVector, missing: Dimension) -> bool:
        """Whether every dimension is strictly less."""
        return (
            self.cpu < other.cpu
            and self.memory < other.memory
            and not self._misses_a_finite(other, missing)
            and all(ours < theirs for _, ours, theirs in self._comparable(other, missing))
        )

    def less_equal(self, other: ResourceVector, missing: Dimension) -> bool:
        """Whether every dimension is less or equal."""
        return (
            _less_equal(self.cpu, other.cpu)
            and _less_equal(self.memory, other.memory)
            and not self._misses_a_finite(other, missing)
            and all(_less_equal(ours, theirs) for _, ours, theirs in self._comparable(other, missing))
        )

    def names_above(self, other: ResourceVector, missing: Dimension) -> list[str]:
        """Resources that are not less or equal: cpu, memory, then scalars by name.

        Quirk: scalars that only ``other`` names never count, in contrast to :meth:`less_equal`.
        """
        found = [(names.CPU, self.cpu, other.cpu), (names.MEMORY, self.memory, other.memory)]
        found += self._comparable(other, missing)
        return [name for name, ours, theirs in found if not _less_equal(ours, theirs)]

    def greater_partly(self, other: ResourceVector, missing: Dimension) -> bool:
        """Whether some resource is above; which, says :meth:`names_above`."""
        return bool(self.names_above(other, missing))

    def less_partly(self, other: ResourceVector, missing: Dimension) -> bool:
        """Whether some dimension is strictly less. Quirk: under Zero, a scalar only ``other`` names always is."""
        return (
            self.cpu < other.cpu
            or self.memory < other.memory
            or self._partly_by_absence(other, missing)
            or any(ours < theirs for _, ours, theirs in self._comparable(other, missing))
        )

    def less_equal_partly(self, other: ResourceVector, missing: Dimension) -> bool:
        """Whether some dimension is less or equal; the same quirk as :meth:`less_partly`."""
        return (
            _less_equal(self.cpu, other.cpu)
            or _less_equal(self.memory, other.memory)
            or self._partly_by_absence(other, missing)
            or any(_less_equal(ours, theirs) for _, ours, theirs in self._comparable(other, missing))
        )

    def equal(self, other: ResourceVector) -> bool:
        """Whether every dimension of this one is equal. Quirk: scalars that only ``other`` names are ignored."""
        theirs = other.scalars or {}
        return (
            abs(self.cpu - other.cpu) < EPSILON
            and abs(self.memory - other.memory) < EPSILON
            and all(abs(amount - theirs.get(name, 0.0)) < EPSILON for name, amount in (self.scalars or {}).items())
        )

    # --- Inner -----------------------------------------------------------------------------------------------------

    def _components(self) -> list[tuple[str, float]]:
        scalars = sorted(self.scalars.items()) if self.scalars else []
        return [(names.CPU, self.cpu), (names.MEMORY, self.memory), *scalars]

    def _comparable(self, other: ResourceVector, missing: Dimension) -> list[tuple[str, float, float]]:
        """Scalars of this one beside the other's; those the other misses are skipped under Infinity."""
        theirs = other.scalars or {}
        skip = missing is Dimension.INFINITY
        ours = sorted((self.scalars or {}).items())
        return [(name, amount, theirs.get(name, 0.0)) for name, amount in ours if not (skip and name not in theirs)]

    def _misses_a_finite(self, other: ResourceVector, missing: Dimension) -> bool:
        """Whether a scalar that is infinite here by absence is finite in the other."""
        return missing is Dimension.INFINITY and not (other.scalars or {}).keys() <= (self.scalars or {}).keys()

    def _partly_by_absence(self, other: ResourceVector, missing: Dimension) -> bool:
        ours, theirs = (self.scalars or {}).keys(), (other.scalars or {}).keys()
        return bool(ours - theirs if missing is Dimension.INFINITY else theirs - ours)


EMPTY = ResourceVector()


def exceeding(left: ResourceVector | None, right: ResourceVector | None) -> ResourceVector:
    """The part of ``left`` above ``right``; an absent right is nothing, an absent left gives nothing."""
    if left is None:
        return EMPTY
    if right is None:
        return left
    return left.difference(right, Dimension.ZERO)[0]


def common_names(left: ResourceVector, right: ResourceVector, *, pods: bool = True) -> list[str]:
    """Resources of which both have something, optionally without ``pods``."""
    theirs = set(right.names())
    return [name for name in left.names() if name in theirs and (pods or name != names.PODS)]


def minimum(left: ResourceVector, right: ResourceVector) -> ResourceVector:
    """Component-wise minimum; scalars only when both have a map (in contrast to ``lowered_to``)."""
    if right.scalars is None:
        left = replace(left, scalars=None)
    return left.lowered_to(right, Dimension.ZERO)


def share(part: float, whole: float) -> float:
    """``part / whole``; of nothing, nothing is 0 and something is 1."""
    if whole == 0:
        return 0.0 if part == 0 else 1.0
    return part / whole


# --- Comparisons restricted to the dimensions of a request (section 8.4) ---------------------------------------------


def less_equal_for(
    left: ResourceVector | None, right: ResourceVector | None, request: ResourceVector | None
) -> tuple[bool, list[str]]:
    """Whether the requested dimensions of ``left`` are at most ``right``'s, without tolerance; and those that are not.

    Quirk: when ``left`` has no scalar map, scalars are not looked at. An absent left always is, an absent right never;
    without a request all dimensions are compared, with tolerance.
    """
    if left is None:
        return True, []
    if right is None:
        return False, left.names()
    if request is None:
        above = left.names_above(right, Dimension.ZERO)
        return not above, above
    selected = _selected(request, scalars=left.scalars is not None)
    above = [name for name in selected if left.get(name) > right.get(name)]
    return not above, above


def less_equal_partly_for(
    left: ResourceVector, right: ResourceVector, request: ResourceVector | None, *, zeros: bool = True
) -> tuple[bool, list[str]]:
    """Whether some requested dimension of ``left`` is at most ``right``'s; and which.

    With ``zeros=False`` dimensions of which both sides have nothing do not count.
    """
    selected = _selected(request)
    if not zeros:
        selected = [name for name in selected if left.get(name) >= EPSILON or right.get(name) >= EPSILON]
    within = [name for name in selected if _less_equal(left.get(name), right.get(name))]
    return bool(within), within


def greater_partly_for(
    left: ResourceVector, right: ResourceVector | None, request: ResourceVector | None, *, irrelevant: bool = True
) -> tuple[bool, list[str]]:
    """Whether some requested dimension of ``left`` is strictly above ``right``'s; and which.

    With ``irrelevant=False``, cpu and memory of which the right has nothing, and scalars that it does not name, do not
    count.
    """
    right = right or EMPTY
    selected = _selected(request)
    if not irrelevant:
        selected = [name for name in selected if _is_relevant(right, name)]
    above = [name for name in selected if left.get(name) > right.get(name)]
    return bool(above), above


def _selected(request: ResourceVector | None, *, scalars: bool = True) -> list[str]:
    """The dimensions that a request selects: those above 0, never ``pods``."""
    if request is None:
        return []
    selected = [name for name in (names.CPU, names.MEMORY) if request.get(name) > 0]
    if scalars and request.scalars:
        selected += sorted(name for name, amount in request.scalars.items() if amount > 0 and name != names.PODS)
    return selected


def _is_relevant(vector: ResourceVector, name: str) -> bool:
    if name in (names.CPU, names.MEMORY):
        return vector.get(name) >= EPSILON
    return vector.scalars is not None and name in vector.scalars


def _counts(name: str, ignored: Collection[str]) -> bool:
    return not name.startswith(resourcenames.COUNT_PREFIX) and name not in ignored and resourcenames.is_scalar(name)


def _less_equal(left: float, right: float) -> bool:
    return left < right or abs(left - right) < EPSILON


def _union(left: Mapping[str, float], right: Mapping[str, float]) -> list[str]:
    return sorted(left.keys() | right.keys())


def _text(amount: float) -> str:
    if amount == MAX_FLOAT:
        return "maxFloat"
    return "maxInt" if amount == float(MAX_INT) else f"{amount:.2f}"
