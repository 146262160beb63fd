"""The devices of nodes, as far as somebody asks about them, kept from cycle to cycle.

Devices of a node are looked at when a pod first asks for some of their kind. Who holds what is read from annotations of
the pods on the node, to which the mirror adds what earlier cycles have bound. When a node is looked at again only
what has changed about its pods is counted anew, and answers are kept until something does. Lists of cards stay for as
long as the Node object does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from stromboli.api import core
from stromboli.scheduler.core.records import Node, Task
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.core.view import View
from stromboli.scheduler.plugins.deviceshare.families import Choice, Devices, DoesNotFit, Family, Holding
from stromboli.scheduler.plugins.deviceshare.settings import Settings

MEMORY = "deviceshare-devices"
MOST_OUTCOMES = 256
"""Answers of one node that are kept: nothing may change there for weeks while shapes of pods come and go."""
_UNCOUNTED = (TaskStatus.RELEASING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED)
"""Statuses of tasks that hold nothing, or what this cycle has counted when it placed them."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What a pod was counted with."""

    holding: Holding
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass(slots=True)
class OnNode:
    """Devices of one family on one node, and what they answered since they last changed."""

    devices: Devices
    held: dict[str, _Held] = field(default_factory=dict)
    """By pod UID."""
    outcomes: dict[tuple[int, str], Choice | DoesNotFit] = field(default_factory=dict)
    """By shape, and by group where that matters."""

    def hold(self, task: Task, holding: Holding) -> None:
        """The pod holds this."""
        if holding and task.uid not in self.held:
            self.devices.hold(task, holding)
            self.held[task.uid] = _Held(holding, task.labels, task.annotations)
            self.outcomes.clear()

    def drop(self, uid: str) -> None:
        """The pod holds nothing."""
        if self.held.pop(uid, None) is not None:
            self.devices.drop(uid)
            self.outcomes.clear()

    def count(self, tasks: Iterable[Task]) -> None:
        """Makes what is held what the pods' annotations say."""
        counted = {
            task.uid: (task, _Held(holding, task.labels, task.annotations))
            for task in tasks
            if task.status not in _UNCOUNTED and (holding := self.devices.recorded(task))
        }
        for uid, held in list(self.held.items()):
            if uid not in counted or counted[uid][1] != held:
                self.drop(uid)
        for task, held in counted.values():
            self.hold(task, held.holding)

    def outcome(self, task: Task, group: str) -> Choice | DoesNotFit:
        """What the devices say to the pod, and to all that look like it in its group."""
        key = (task.shape.index, group)
        outcome = self.outcomes.get(key)
        if outcome is None:
            try:
                outcome = self.devices.choose(task)
            except DoesNotFit as refusal:
                outcome = refusal.with_traceback(None)
            if len(self.outcomes) >= MOST_OUTCOMES:
                self.outcomes.clear()
            self.outcomes[key] = outcome
        return outcome


@dataclass(slots=True)
class _Kept:
    """Devices of a node, and what they were read from."""

    resource: core.Node
    version: object
    on_node: OnNode | None


@dataclass(slots=True)
class Memory:
    """What is kept, for as long as the settings stay the same."""

    settings: Settings
    nodes: dict[tuple[str, str], _Kept] = field(default_factory=dict)


class ClusterDevices:
    """The devices of all nodes that somebody asks about in this cycle."""

    def __init__(self, view: View, settings: Settings) -> None:
        memory = view.memory.get(MEMORY)
        if not isinstance(memory, Memory) or memory.settings != settings:
            memory = view.memory[MEMORY] = Memory(settings)
        self._nodes = view.nodes_by_name
        self._kept = memory.nodes
        for key in [key for key in self._kept if key[1] not in view.nodes_by_name]:
            del self._kept[key]
        self._now: dict[tuple[str, str], OnNode | None] = {}

    def outcome(self, family: Family, node: Node, task: Task) -> Choice | DoesNotFit | None:
        """What the node's devices say to the pod; None when it has none of the family."""
        found = self._of(family, node)
        if found is None:
            return None
        return found.outcome(task, task.job_id if family.depends_on_group(task) else "")

    def choose(self, family: Family, node: Node, task: Task) -> Choice | None:
        """Chooses for this pod and counts what it gets. Raises DoesNotFit."""
        found = self._of(family, node)
        if found is None:
            return None
        choice = found.devices.choose(task)
        found.hold(task, choice.holding)
        return choice

    def restore(self, families: Iterable[Family], node: Node, task: Task, chosen: Mapping[str, Choice]) -> None:
        """The pod holds again what this cycle has chosen for it, or what its annotations say.

        It may do so without asking for it now: cards have been given out by another mode before. Nodes that nobody has
        asked about yet are counted when somebody does.
        """
        for family in families:
            found = self._now.get((family.name, node.name))
            if found is not None:
                choice = chosen.get(family.name)
                found.hold(task, choice.holding if choice is not None else found.devices.recorded(task))

    def drop(self, families: Iterable[Family], node: Node, task: Task) -> None:
        """The pod holds nothing on the node any more, be it that it does not ask for what it held."""
        for family in families:
            found = self._now.get((family.name, node.name))
            if found is not None:
                found.drop(task.uid)

    def known(self, family: Family) -> Iterator[tuple[str, Devices | None]]:
        """Nodes that somebody has asked about at some time, with their devices as pods hold them now."""
        for name, node in [(name, self._nodes.get(name)) for kind, name in self._kept if kind == family.name]:
            found = self._of(family, node) if node is not None else None
            yield name, found.devices if found is not None else None

    def _of(self, family: Family, node: Node) -> OnNode | None:
        key = (family.name, node.name)
        if key not in self._now:
            found = self._now[key] = self._look(family, node)
            if found is not None:
                found.count(node.tasks.values())
        return self._now[key]

    def _look(self, family: Family, node: Node) -> OnNode | None:
        resource = node.resource
        if resource is None:
            return None
        kept, version = self._kept.get((family.name, node.name)), family.version
        if kept is None or kept.resource is not resource or not (kept.version is version or kept.version == version):
            inventory = family.inventory(resource)
            on_node = None if inventory is None else OnNode(family.devices(inventory, node.name))
            kept = self._kept[family.name, node.name] = _Kept(resource, version, on_node)
        return kept.on_node
