"""Policies: which nodes a scheduler may have, which it would rather have, and how many (spec 03 section 10.2). Pure.

A policy implements one or more of the three roles. Add your own by registering a maker in :data:`POLICIES`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Final, Protocol, TypeAlias, runtime_checkable

from stromboli.api import names
from stromboli.controllers.sharding.utilisation import Candidate

log = logging.getLogger(__name__)

Arguments: TypeAlias = Mapping[str, object]


class BadPolicy(ValueError):
    """Arguments that contradict each other; one line that names them."""


@runtime_checkable
class Filter(Protocol):
    """Decides on single nodes."""

    def admits(self, node: Candidate) -> bool:
        """Whether the scheduler may have the node."""
        ...


@runtime_checkable
class Score(Protocol):
    """Compares nodes."""

    def score(self, node: Candidate) -> Fraction:
        """From 0 to 1; more is better."""
        ...


@runtime_checkable
class Select(Protocol):
    """Decides how many nodes of an ordered list are taken."""

    def select(self, nodes: Sequence[Candidate]) -> Sequence[Candidate]:
        """The nodes that are taken."""
        ...


@dataclass(frozen=True, slots=True)
class AllocationRate:
    """Nodes whose CPU is used by a share between two bounds, both included; the fuller the better."""

    lowest: Fraction
    highest: Fraction

    @classmethod
    def make(cls, arguments: Arguments) -> AllocationRate:
        """From ``minCPUUtil`` (0) and ``maxCPUUtil`` (1)."""
        low, high = _number(arguments, "minCPUUtil", 0), _number(arguments, "maxCPUUtil", 1)
        if not 0 <= low <= high <= 1:
            raise BadPolicy(f"minCPUUtil {low} and maxCPUUtil {high} must be in order and from 0 to 1")
        return cls(rounded(low), rounded(high))

    def admits(self, node: Candidate) -> bool:
        """Whether the node's share is known and within the bounds."""
        return node.used is not None and self.lowest <= rounded(node.used.cpu) <= self.highest

    def score(self, node: Candidate) -> Fraction:
        """Where between the bounds the node is."""
        if node.used is None:
            return Fraction()
        if self.lowest == self.highest:
            return Fraction(1)
        place = (rounded(node.used.cpu) - self.lowest) / (self.highest - self.lowest)
        return min(max(place, Fraction()), Fraction(1))


@dataclass(frozen=True, slots=True)
class Warmup:
    """Nodes with a label are better."""

    label: str
    value: str

    @classmethod
    def make(cls, arguments: Arguments) -> Warmup:
        """From ``warmupLabel`` and ``warmupLabelValue`` (``true``)."""
        label = _text(arguments, "warmupLabel", names.NODE_WARMUP)
        if not label:
            raise BadPolicy("warmupLabel must not be empty")
        return cls(label, _text(arguments, "warmupLabelValue", "true"))

    def score(self, node: Candidate) -> Fraction:
        """1 with the label, else 0."""
        return Fraction(node.labels.get(self.label) == self.value)


@dataclass(frozen=True, slots=True)
class NodeLimit:
    """The best so many nodes; 0 is without limit."""

    fewest: int
    most: int

    @classmethod
    def make(cls, arguments: Arguments) -> NodeLimit:
        """From ``minNodes`` and ``maxNodes``."""
        fewest, most = int(_number(arguments, "minNodes", 0)), int(_number(arguments, "maxNodes", 0))
        if fewest < 0 or 0 < most < fewest:
            raise BadPolicy(f"minNodes {fewest} must be at least 0, and maxNodes {most} not less")
        return cls(fewest, most)

    def select(self, nodes: Sequence[Candidate]) -> Sequence[Candidate]:
        """The first ``most``; fewer than ``fewest`` are taken too."""
        taken = nodes[: self.most] if self.most > 0 else nodes
        if len(taken) < self.fewest:
            log.info("%d nodes of at least %d wanted", len(taken), self.fewest)
        return taken


Policy: TypeAlias = Filter | Score | Select

POLICIES: Final[dict[str, Callable[[Arguments], Policy]]] = {
    "allocation-rate": AllocationRate.make,
    "warmup": Warmup.make,
    "node-limit": NodeLimit.make,
}
"""Makers by the name that configurations use."""


def rounded(share: Fraction) -> Fraction:
    """To two decimals, halves away from zero."""
    exact = Decimal(share.numerator) / Decimal(share.denominator)
    return Fraction(exact.quantize(Decimal("0.01"), ROUND_HALF_UP))


def _number(arguments: Arguments, name: str, default: int) -> Fraction:
    given = arguments.get(name)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return Fraction(str(given))
    if given is not None:
        log.warning("argument %s: %r is not a number and has no effect", name, given)
    return Fraction(default)


def _text(arguments: Arguments, name: str, default: str) -> str:
    given = arguments.get(name)
    if given is None or isinstance(given, str):
        return default if given is None else given
    log.warning("argument %s: %r is not a text and has no effect", name, given)
    return default
