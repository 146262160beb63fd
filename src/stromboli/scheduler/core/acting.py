"""The contract of actions: what a cycle executes, in the order of the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from stromboli.scheduler.core.cycle import Cycle


class Action(Protocol):
    """One step of a cycle. Everything it changes goes through statements of ``cycle.journal``."""

    def __call__(self, cycle: Cycle, arguments: Mapping[str, object]) -> None:
        """Runs to its end; ``arguments`` are those of the policy's ``configurations``, possibly empty."""
        ...
