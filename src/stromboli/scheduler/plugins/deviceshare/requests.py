"""How much of which resource containers ask for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stromboli.api import core, quantities
from stromboli.api.quantities import BadQuantity

EVERYTHING = 100


@dataclass(frozen=True, slots=True)
class ResourceNames:
    """The resources by which cards are asked for; an empty name stands for none."""

    count: str
    memory: str
    percentage: str = ""
    cores: str = ""


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """Cards that a container asks for, and what of each."""

    number: int
    memory: int = 0
    """MiB; counts when there is no percentage."""
    percentage: int | None = None
    """Of the card's memory."""
    cores: int = 0
    """Percent of a card."""

    def memory_of(self, card_memory: int) -> int:
        """MiB asked for of a card with so much memory."""
        return self.memory if self.percentage is None else card_memory * self.percentage // EVERYTHING


def container_requests(spec: core.PodSpec, names: ResourceNames) -> list[ContainerRequest]:
    """Requests of the containers that name the number of cards or their memory in limits (spec 06 section 31.1).

    Init containers do not count, nor do containers that ask for no card at all.
    """
    found = []
    for container in spec.containers:
        limits = container.resources.limits
        if names.count in limits or names.memory in limits:
            number = quantity(limits, names.count) if names.count in limits else 1
            if number > 0:
                found.append(_request(container.resources, names, number))
    return found


def _request(resources: core.ResourceRequirements, names: ResourceNames, number: int) -> ContainerRequest:
    memory = _asked(resources, names.memory) or 0
    percentage = _asked(resources, names.percentage)
    if percentage is None and not memory:
        percentage = EVERYTHING
    return ContainerRequest(number, memory, percentage, _asked(resources, names.cores) or 0)


def _asked(resources: core.ResourceRequirements, name: str) -> int | None:
    """The amount in limits, else in requests."""
    for listed in (resources.limits, resources.requests):
        if name and name in listed:
            return quantity(listed, name)
    return None


def quantity(listed: core.ResourceList, name: str) -> int:
    """A whole amount of a resource list; 0 when it is absent or cannot be read."""
    try:
        return quantities.value(listed.get(name, 0))
    except BadQuantity:
        return 0


def most_at_once(spec: core.PodSpec, name: str) -> int:
    """What a pod needs by its limits: its containers together, or its largest init container (section 30)."""

    def limits(containers: Iterable[core.Container]) -> list[int]:
        return [quantity(container.resources.limits, name) for container in containers]

    return max(max(limits(spec.init_containers), default=0), sum(limits(spec.containers)))
