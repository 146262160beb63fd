"""Why a node was refused, as data: a status code and a text (spec 04 sections 27.5 and 31)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Code(IntEnum):
    """Status codes of node filters."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5

    @property
    def aborts(self) -> bool:
        """Whether later filters of the same plugin are not asked about this node."""
        return self not in (Code.SUCCESS, Code.UNSCHEDULABLE)


@dataclass(frozen=True, slots=True)
class Reason:
    """One way in which a filter refuses nodes."""

    text: str
    code: Code = Code.UNSCHEDULABLE


POD_NUMBER_EXCEEDED = "node(s) pod number exceeded"
RESOURCE_FIT_FAILED = "node(s) resource fit failed"
ALL_NODES_UNAVAILABLE = "all nodes are unavailable"


def insufficient(resource: str) -> Reason:
    """The refusal of a node that lacks a resource; eviction may help."""
    return Reason(f"Insufficient {resource}", Code.UNSCHEDULABLE)
