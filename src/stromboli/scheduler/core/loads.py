"""Measured load of nodes, as the shell hands it to a cycle (spec 04 section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OPTION = "node-loads"
"""Key in the options of a cycle: node name to :class:`NodeLoad`."""

PERIOD = "10m"
"""The averaging period is fixed, and is the key under which values are stored."""


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """Averages by period in percent, and when they were taken (seconds since the epoch)."""

    time: float
    cpu: Mapping[str, float]
    memory: Mapping[str, float]


def of(options: Mapping[str, object]) -> Mapping[str, NodeLoad]:
    """The loads that a cycle was given, by node name."""
    known = options.get(OPTION)
    return known if isinstance(known, Mapping) else {}
