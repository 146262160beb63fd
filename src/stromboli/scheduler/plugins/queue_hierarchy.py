"""Parents, children and ancestors of queues, and which queues cannot be used as they are (spec 06 section 10.3).

A queue whose parent does not exist, or that is among its own ancestors, is set aside together with everything below it;
all other queues are as if it were not there. (The original stops scheduling altogether.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Queue

ROOT = "root"


def parent_of(queue: Queue) -> str:
    """The name of the parent; empty for the root."""
    return "" if queue.name == ROOT else queue.resource.spec.parent or ROOT


@dataclass(slots=True)
class QueueHierarchy:
    """The tree of one cycle."""

    children: dict[str, list[str]] = field(default_factory=dict)
    """By name, of usable queues."""
    ancestors: dict[str, list[str]] = field(default_factory=dict)
    """Usable queues to their ancestors, parent first."""
    faults: dict[str, str] = field(default_factory=dict)
    """Queues that are set aside, to the reason."""

    @classmethod
    def of(cls, queues: Mapping[str, Queue]) -> QueueHierarchy:
        """Reads the parents of all queues."""
        tree = cls()
        for name in queues:
            tree._add(name, queues)
        for name, line in tree.ancestors.items():
            tree.children.setdefault(name, [])
            if line:
                tree.children.setdefault(line[0], []).append(name)
        return tree

    @property
    def downwards(self) -> list[str]:
        """Usable queues, every parent before its children."""
        return sorted(self.ancestors, key=lambda name: len(self.ancestors[name]))

    def is_leaf(self, name: str) -> bool:
        """Whether a usable queue has no children."""
        return not self.children[name]

    def common_depth(self, left: str, right: str) -> int:
        """How many ancestors, counted from the root, two queues share."""
        depth = 0
        for mine, other in zip(reversed(self.ancestors[left]), reversed(self.ancestors[right]), strict=False):
            if mine != other:
                break
            depth += 1
        return depth

    def at_depth(self, name: str, depth: int) -> str:
        """The ancestor with so many queues above it, or the queue itself when it has none there."""
        line = self.ancestors[name]
        return line[len(line) - 1 - depth] if depth < len(line) else name

    def _add(self, name: str, queues: Mapping[str, Queue]) -> None:
        line: list[str] = []
        above = parent_of(queues[name])
        while above:
            if above not in queues:
                self._fault(name, line, f"the queue {(line or [name])[-1]} has invalid parent queue {above}")
                return
            if above == name or above in line:
                self._fault(name, line, f"cycle detected in queue hierarchy for queue {name}")
                return
            line.append(above)
            above = parent_of(queues[above])
        self.ancestors[name] = line

    def _fault(self, name: str, line: list[str], text: str) -> None:
        via = f" (an ancestor of queue {name})" if line and "cycle" not in text else ""
        self.faults[name] = text + via
