"""What a family of devices is to the plugin, and the words they share.

A *family* is one kind of device: how a node lists it, how a pod asks for it, how an assignment is written on the pod.
*Devices* are those of one family on one node, together with what pods hold of them. A *holding* is what a pod gets: for
each container that asks, its *shares* of cards.

Nothing here is undone by hand: a holding is put in and taken out whole, so that rolling back is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from stromboli.api import core
from stromboli.scheduler.core.extensions import NodeLock
from stromboli.scheduler.core.reasons import Reason
from stromboli.scheduler.core.records import Task

BINPACK, SPREAD = "binpack", "spread"
FULL = 100.0


@dataclass(frozen=True, slots=True)
class Share:
    """What a container gets of one card. Amounts are MiB and percent, or what the family counts in."""

    device: str
    """The card's id; for an instance of a card, with its place."""
    type: str
    memory: int
    cores: int


Holding = tuple[tuple[Share, ...], ...]
"""By container; containers that ask for nothing have no place in it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a pod would get on a node, and how good that is."""

    holding: Holding
    score: float = 0.0


class DoesNotFit(Exception):
    """The node's devices do not take the pod; ``reason`` is for its owner, the text says more to administrators."""

    def __init__(self, reason: Reason, details: str = "") -> None:
        super().__init__(details or reason.text)
        self.reason = reason


class Devices(Protocol):
    """Devices of one family on one node."""

    def recorded(self, task: Task) -> Holding:
        """What the pod's annotations say that it holds here; what is not to be found here is left out."""
        ...

    def choose(self, task: Task) -> Choice:
        """What the pod would get, as things are. Changes nothing. Raises DoesNotFit."""
        ...

    def hold(self, task: Task, holding: Holding) -> None:
        """The pod gets this; nothing happens when it holds something already."""
        ...

    def drop(self, uid: str) -> None:
        """The pod holds nothing any more."""
        ...


class Family(Protocol):
    """One kind of device."""

    name: str
    generic: Reason
    """Stands for refusals when there are too many different ones."""

    @property
    def version(self) -> object:
        """Equal as long as the same Node object means the same devices."""
        ...

    def asks(self, task: Task) -> bool:
        """Whether the pod asks for devices of this kind."""
        ...

    def depends_on_group(self, task: Task) -> bool:
        """Whether the answer for this pod depends on its PodGroup."""
        ...

    def inventory(self, node: core.Node) -> object | None:
        """What the node lists, to be kept; None when it has none."""
        ...

    def devices(self, inventory: object, node: str) -> Devices:
        """The devices of an inventory, held by nobody."""
        ...

    def annotations(self, choice: Choice, node: str, now: float) -> Mapping[str, str]:
        """How the choice is written on the pod; ``now`` in seconds since the epoch."""
        ...

    def lock(self, task: Task, node: str) -> NodeLock | None:
        """The lock that must be held on the node while the pod is bound."""
        ...
