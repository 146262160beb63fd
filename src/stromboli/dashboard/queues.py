"""Queues as a tree, each with what it uses, may use, deserves and is guaranteed, by resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from stromboli.api import core, names
from stromboli.api.phases import PodGroupPhase, QueueState
from stromboli.dashboard import amounts
from stromboli.dashboard.sights import Sight
from stromboli.dashboard.trees import preorder
from stromboli.dashboard.waiting import waits


@dataclass(frozen=True, slots=True)
class Use:
    """A queue and one resource: amounts as text (empty: not set), and as parts of the length of a bar (0 to 1).

    The bar ends at the capability, or without one at what the cluster has (``limited`` is false then).
    """

    resource: str
    used: str
    deserved: str
    guarantee: str
    capability: str
    of: str
    limited: bool
    used_part: float
    deserved_part: float | None
    guarantee_part: float | None


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue in the order of the tree. ``waiting`` and ``running`` count its PodGroups and those of queues below."""

    name: str
    parent: str
    depth: int
    state: str
    weight: int
    priority: int
    reclaimable: bool
    waiting: int
    running: int
    uses: tuple[Use, ...]


def tree(queues: Iterable[core.Queue]) -> Iterator[tuple[int, core.Queue]]:
    """Queues below their parents, with their depth; those of a circle or without parent stand at the top."""
    return preorder(queues, parent_of)


def parent_of(queue: core.Queue) -> str:
    """The queue above; empty for the root."""
    return "" if queue.name == names.ROOT_QUEUE else queue.spec.parent or names.ROOT_QUEUE


def resources(sight: Sight) -> list[str]:
    """Resources that queues are measured in: cpu, memory, and whatever some queue uses or names."""
    found: set[str] = set()
    for queue in sight.queues:
        spec = queue.spec
        for listed in (queue.status.allocated, spec.capability, spec.deserved, spec.guarantee.resource):
            found.update(listed)
    return amounts.ordered(found)


def rows(sight: Sight) -> list[QueueRow]:
    """All queues, parents before their children."""
    total = amounts.total(node.status.allocatable for node in sight.nodes)
    measured = resources(sight)
    ordered = list(tree(sight.queues))
    waiting = _with_children(ordered, (group for group in sight.groups if waits(group)))
    running = _with_children(ordered, (group for group in sight.groups if group.status.phase == PodGroupPhase.RUNNING))
    return [
        QueueRow(
            queue.name,
            parent_of(queue),
            depth,
            queue.status.state or QueueState.UNKNOWN,
            queue.spec.weight,
            queue.spec.priority,
            queue.spec.reclaimable is not False,
            waiting[queue.name],
            running[queue.name],
            tuple(_use(queue, resource, total) for resource in measured),
        )
        for depth, queue in ordered
    ]


def _with_children(ordered: Sequence[tuple[int, core.Queue]], groups: Iterable[core.PodGroup]) -> Counter[str]:
    """PodGroups by queue, those of a queue counted for all queues above it, too."""
    found = Counter(group.spec.queue for group in groups)
    for depth, queue in reversed(ordered):
        if depth:
            found[parent_of(queue)] += found[queue.name]
    return found


def _use(queue: core.Queue, resource: str, total: Mapping[str, Fraction]) -> Use:
    spec = queue.spec
    used = amounts.amount(queue.status.allocated, resource) or Fraction()
    deserved = amounts.amount(spec.deserved, resource)
    guarantee = amounts.amount(spec.guarantee.resource, resource)
    capability = amounts.amount(spec.capability, resource)
    of = total.get(resource) if capability is None else capability
    return Use(
        resource,
        amounts.text(used, resource),
        amounts.text(deserved, resource),
        amounts.text(guarantee, resource),
        amounts.text(capability, resource),
        amounts.text(of, resource),
        capability is not None,
        amounts.part(used, of),
        None if deserved is None else amounts.part(deserved, of),
        None if guarantee is None else amounts.part(guarantee, of),
    )
