"""What a reference knows: objects, and what has happened to the pods, in order.

Nothing is counted up as it happens: every question goes through the whole story again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from stromboli.api import core, quantities
from tests.scheduler.core.worlds import NOW


class Act(Enum):
    """What happened to a pod."""

    PLACE = "place"
    """It was given idle resources of a node in this session."""
    PROMISE = "promise"
    """It was told in this session to wait for resources of a node."""
    EVICT = "evict"
    """Its resources were taken away in this session."""
    GO = "go"
    """Its object was deleted."""
    CLOSE = "close"
    """The session ended (of no pod in particular)."""


@dataclass(frozen=True)
class Step:
    """One thing that happened."""

    act: Act
    pod: str = ""
    node: str = ""


class Place(Enum):
    """How a pod is on its node."""

    RUNNING = "running"
    """as its object says"""
    LEAVING = "leaving"
    """as its object says, being deleted; or evicted in an earlier session"""
    BOUND = "bound"
    """placed in an earlier session"""
    PLACED = "placed"
    PROMISED = "promised"
    EVICTED = "evicted"


@dataclass
class Told:
    """The cluster. Names of pods and groups are told without their namespace, ``ns``."""

    nodes: dict[str, core.Node] = field(default_factory=dict)
    pods: dict[str, core.Pod] = field(default_factory=dict)
    groups: dict[str, core.PodGroup] = field(default_factory=dict)
    queues: dict[str, core.Queue] = field(default_factory=dict)
    hyper_nodes: dict[str, core.HyperNode] = field(default_factory=dict)
    others: list[core.Object] = field(default_factory=list)
    options: dict[str, object] = field(default_factory=dict)
    now: float = NOW
    steps: list[Step] = field(default_factory=list)
    gone: dict[str, core.Pod] = field(default_factory=dict)
    """Pods that were deleted; the story still speaks of them."""

    def pod(self, name: str) -> core.Pod:
        """A pod, be it gone."""
        return self.pods.get(name) or self.gone[name]

    def objects(self) -> Iterator[core.Object]:
        """Everything, in the order in which a mirror may be told."""
        for known in (self.queues, self.hyper_nodes, self.nodes, self.groups, self.pods):
            yield from known.values()
        yield from self.others

    def where(self) -> dict[str, tuple[str, Place]]:
        """For each pod on a node which node, and how it is there."""
        found: dict[str, tuple[str, Place]] = {}
        for name, pod in [*self.pods.items(), *self.gone.items()]:
            if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed"):
                found[name] = (pod.spec.node_name, Place.LEAVING if pod.deleting else Place.RUNNING)
        for step in self.steps:
            match step.act:
                case Act.PLACE:
                    found[step.pod] = (step.node, Place.PLACED)
                case Act.PROMISE:
                    found[step.pod] = (step.node, Place.PROMISED)
                case Act.EVICT:
                    found[step.pod] = (found[step.pod][0], Place.EVICTED)
                case Act.GO:
                    found.pop(step.pod, None)
                case Act.CLOSE:
                    found = dict(_closed(found))
        return found

    def moves(self) -> Iterator[tuple[str, str]]:
        """Pods and the nodes to which they came, one after the other; no node: they have nothing there any more.

        Who was only told to wait has nothing when the session ends.
        """
        waiting: list[str] = []
        for step in self.steps:
            match step.act:
                case Act.PLACE | Act.PROMISE:
                    waiting += [step.pod] if step.act is Act.PROMISE else []
                    yield step.pod, step.node
                case Act.EVICT | Act.GO:
                    yield step.pod, ""
                case Act.CLOSE:
                    yield from ((name, "") for name in waiting)
                    waiting = []

    def pending(self) -> list[str]:
        """Pods without a node."""
        placed = self.where()
        return [name for name, pod in self.pods.items() if name not in placed and not pod.spec.node_name]

    def evictable(self, *places: Place) -> list[str]:
        """Pods that are on nodes in one of these ways."""
        return [name for name, (_, place) in self.where().items() if place in places]

    def on(self, node: str, *places: Place) -> list[core.Pod]:
        """Pods on a node that are there in one of these ways."""
        return [self.pod(name) for name, (at, place) in self.where().items() if at == node and place in places]

    # Amounts, in milli for everything but memory (bytes) and pods.

    def used(self, node: str, resource: str) -> float:
        """What pods hold; what is only promised is not held, what is being released still is."""
        holding = (Place.RUNNING, Place.LEAVING, Place.BOUND, Place.PLACED, Place.EVICTED)
        return sum(request(pod, resource) for pod in self.on(node, *holding))

    def idle(self, node: str, resource: str) -> float:
        """What nobody holds."""
        return room(self.nodes[node], resource) - self.used(node, resource)

    def releasing(self, node: str, resource: str) -> float:
        """What will be given back."""
        return sum(request(pod, resource) for pod in self.on(node, Place.LEAVING, Place.EVICTED))

    def promised(self, node: str, resource: str) -> float:
        """What pods wait for."""
        return sum(request(pod, resource) for pod in self.on(node, Place.PROMISED))

    def future(self, node: str, resource: str) -> float:
        """What will be idle when everything that is being released has been, and promises are kept."""
        return self.idle(node, resource) + self.releasing(node, resource) - self.promised(node, resource)

    def group_of(self, pod: core.Pod) -> core.PodGroup:
        """The PodGroup of a pod."""
        return self.groups[pod.metadata.annotations["scheduling.k8s.io/group-name"]]

    def queue_of(self, pod: core.Pod) -> core.Queue:
        """The queue of a pod."""
        return self.queues[self.group_of(pod).spec.queue]


def _closed(found: Mapping[str, tuple[str, Place]]) -> Iterator[tuple[str, tuple[str, Place]]]:
    for name, (node, place) in found.items():
        match place:
            case Place.PROMISED:
                pass
            case Place.PLACED:
                yield name, (node, Place.BOUND)
            case Place.EVICTED:
                yield name, (node, Place.LEAVING)
            case _:
                yield name, (node, place)


def amount(listed: Mapping[str, str | int | float], resource: str) -> float:
    """One entry of a resource list."""
    if resource not in listed:
        return 0.0
    whole = quantities.value if resource in ("memory", "pods") else quantities.milli
    return float(whole(listed[resource]))


def request(pod: core.Pod, resource: str) -> float:
    """What a pod asks for: the sum over its containers, or the largest init container if that is more."""
    if resource == "pods":
        return 1.0
    init = [amount(one.resources.requests, resource) for one in pod.spec.init_containers]
    return max([sum(amount(one.resources.requests, resource) for one in pod.spec.containers), *init])


def requested(pod: core.Pod) -> list[str]:
    """Names of what a pod asks for, ``pods`` included, where it is more than nothing."""
    listed = [*pod.spec.init_containers, *pod.spec.containers]
    names = {name for one in listed for name in one.resources.requests}
    return [name for name in ("cpu", "memory", "pods", *sorted(names - {"cpu", "memory"})) if request(pod, name) >= 0.1]


def room(node: core.Node, resource: str) -> float:
    """What a node offers."""
    return amount(node.status.allocatable, resource)
