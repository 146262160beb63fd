"""Queues by parent, in order, with what the children of a queue are guaranteed and deserve together.

A validation looks at all siblings of a queue. Adding up thousands of them for each would make the size of a family the
price of every change in it; here a change costs what the changed queue has, and a look nothing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from stromboli.api import names, quantities
from stromboli.api.resourcenames import is_scalar
from stromboli.webhooks.shapes import Queue, ResourceList

Amounts = Mapping[str, int]
"""cpu in milli, memory in bytes, pods in units, every other resource that is compared in milli-units."""


def measured(resources: ResourceList) -> Amounts:
    """The resources that take part in comparisons, as numbers, by name. What is no quantity is left out."""
    return {
        name: _measure(name, amount)
        for name, amount in sorted(resources.items())
        if _is_compared(name) and quantities.is_quantity(amount)
    }


def _measure(name: str, amount: quantities.Quantity) -> int:
    match name:
        case "memory" | "pods":
            return quantities.value(amount)
        case _:
            return quantities.milli(amount)


def _is_compared(name: str) -> bool:
    return name in (names.CPU, names.MEMORY, names.PODS, names.EPHEMERAL_STORAGE) or is_scalar(name)


@dataclass(frozen=True, slots=True)
class Claims:
    """What one queue takes of its parent, or may take."""

    guarantee: Amounts
    deserved: Amounts
    capability: Amounts

    @classmethod
    def of(cls, queue: Queue) -> Claims:
        """What a queue's spec says."""
        spec = queue.spec
        return cls(measured(spec.guarantee.resource), measured(spec.deserved), measured(spec.capability))


NOTHING: Final = Claims({}, {}, {})


@dataclass(slots=True)
class Total:
    """A sum of amounts. It knows which resources are named at all, if only at 0."""

    amounts: dict[str, int] = field(default_factory=dict)
    negative: int = 0
    """How many of the amounts added are below 0: then the sum may be smaller than that of some of them."""
    _named: dict[str, int] = field(default_factory=dict)

    def add(self, amounts: Amounts, times: int = 1) -> None:
        """Add amounts, or with ``times=-1`` take away what was added."""
        for name, amount in amounts.items():
            self.amounts[name] = self.amounts.get(name, 0) + times * amount
            self._named[name] = self._named.get(name, 0) + times
            self.negative += times * (amount < 0)
            if not self._named[name]:
                del self._named[name], self.amounts[name]

    def changed(self, before: Amounts, after: Amounts) -> Total:
        """The sum with ``after`` in place of ``before``; itself untouched."""
        total = Total(dict(self.amounts), self.negative, dict(self._named))
        total.add(before, -1)
        total.add(after)
        return total


@dataclass(slots=True)
class Family:
    """The children of one queue."""

    children: list[Queue] = field(default_factory=list)
    """By name."""
    guarantee: Total = field(default_factory=Total)
    deserved: Total = field(default_factory=Total)
    claims: dict[str, Claims] = field(default_factory=dict)
    """By name of the child."""

    @classmethod
    def of(cls, queues: Iterable[Queue]) -> Family:
        """A family of its own, for queues in any order."""
        family = cls()
        for queue in queues:
            family.add(queue)
        return family

    def add(self, queue: Queue) -> None:
        """Take in a queue that is not there."""
        claims = self.claims[queue.name] = Claims.of(queue)
        insort(self.children, queue, key=_name)
        self.guarantee.add(claims.guarantee)
        self.deserved.add(claims.deserved)

    def remove(self, name: str) -> None:
        """Forget a queue that is there."""
        claims = self.claims.pop(name)
        del self.children[bisect_left(self.children, name, key=_name)]
        self.guarantee.add(claims.guarantee, -1)
        self.deserved.add(claims.deserved, -1)


NOBODY: Final = Family()
"""The family of a queue without children. Never added to."""


class Families:
    """All families, kept up with changes of queues."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}
        self._parents: dict[str, str] = {}

    def put(self, queue: Queue) -> None:
        """Take in a queue, new or changed."""
        self.remove(queue.name)
        self._parents[queue.name] = queue.spec.parent
        self._families.setdefault(queue.spec.parent, Family()).add(queue)

    def remove(self, name: str) -> None:
        """Forget a queue, if it is known."""
        parent = self._parents.pop(name, None)
        if parent is None:
            return
        family = self._families[parent]
        family.remove(name)
        if not family.children:
            del self._families[parent]

    def below(self, parent: str) -> Family:
        """The queues that name ``parent`` as theirs. Only to be read, and only until the next change."""
        return self._families.get(parent, NOBODY)


def _name(queue: Queue) -> str:
    return queue.name
