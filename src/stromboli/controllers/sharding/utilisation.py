"""How full nodes are by the requests of their pods (spec 03 section 10.3). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from stromboli.api import names, quantities
from stromboli.api.core import Node, Pod
from stromboli.api.phases import PodPhase

_ENDED = (PodPhase.SUCCEEDED, PodPhase.FAILED)


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Shares of a node's capacity, from 0 to 1, and the number of pods."""

    cpu: Fraction = Fraction()
    memory: Fraction = Fraction()
    pods: int = 0

    def is_far_from(self, other: Utilisation, distance: Fraction) -> bool:
        """Whether cpu or memory differ by more than ``distance``."""
        return abs(self.cpu - other.cpu) > distance or abs(self.memory - other.memory) > distance


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node as policies see it; ``used`` is None while it is not known."""

    name: str
    used: Utilisation | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def utilisation(node: Node, pods: Iterable[Pod]) -> Utilisation:
    """Requests of the containers of pods that run, against the node's capacity. Static pods do not count."""
    counted = [pod for pod in pods if _counts(pod)]
    cpu, memory = (
        _share(_requested(counted, resource), node.status.capacity.get(resource, 0))
        for resource in (names.CPU, names.MEMORY)
    )
    return Utilisation(cpu, memory, len(counted))


def _counts(pod: Pod) -> bool:
    return pod.status.phase not in _ENDED and names.MIRROR_POD not in pod.metadata.annotations


def _requested(pods: Iterable[Pod], resource: str) -> Fraction:
    return sum(
        (
            quantities.parse(container.resources.requests.get(resource, 0))
            for pod in pods
            for container in pod.spec.containers
        ),
        Fraction(),
    )


def _share(amount: Fraction, capacity: quantities.Quantity) -> Fraction:
    whole = quantities.parse(capacity)
    return min(amount / whole, Fraction(1)) if whole > 0 else Fraction()
