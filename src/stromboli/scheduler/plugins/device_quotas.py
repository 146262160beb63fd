"""Quotas of queues on device classes of dynamic resource allocation (spec 06 section 10.7).

Demands and their keys are those of ``core.devices``. A claim that several tasks of a queue share counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from stromboli.api import quantities
from stromboli.scheduler.core.devices import MARK, Demand, add, total_of
from stromboli.scheduler.core.view import Shortage


def device_class(key: str) -> str:
    """The class that a key is about."""
    return key.partition(MARK)[2]


def limits(resources: Mapping[str, str | int | float]) -> Demand:
    """The device keys of a queue's resource list; keys without class or dimension are ignored."""
    found: Demand = {}
    for key, quantity in resources.items():
        before, mark, name = key.partition(MARK)
        if not mark or not name or (before and (before == "." or not before.endswith("."))):
            continue
        found[key] = float(quantities.parse(str(quantity)) if before else quantities.value(str(quantity)))
    return found


@dataclass(slots=True)
class DeviceAccount:
    """What one queue may have, has and has promised."""

    limit: Demand
    allocated: Demand = field(default_factory=dict)
    inqueue: Demand = field(default_factory=dict)
    claims: Counter[str] = field(default_factory=Counter)
    """Tasks by claim."""
    holder: str = ""
    """The queue's name."""

    def admits(self, claims: Mapping[str, Demand]) -> bool:
        """Whether a task with these claims may be placed."""
        return self._fits(self._new(claims), self.allocated)

    def promise(self, demand: Demand) -> None:
        """A job that demands this at least was admitted."""
        add(self.inqueue, demand)

    def charge(self, claims: Mapping[str, Demand]) -> None:
        """A task with these claims was placed."""
        for key, demand in claims.items():
            self.claims[key] += 1
            if self.claims[key] == 1:
                add(self.allocated, demand)

    def release(self, claims: Mapping[str, Demand]) -> None:
        """The reverse of :meth:`charge`."""
        for key, demand in claims.items():
            self.claims[key] -= 1
            if self.claims[key] == 0:
                add(self.allocated, demand, -1.0)

    def lacking(self, demand: Mapping[str, float]) -> list[Shortage]:
        """What the queue has too little of to admit a job that demands this at least."""
        return self._short(demand, total_of((self.allocated, self.inqueue)))

    def lacking_for(self, claims: Mapping[str, Demand]) -> list[Shortage]:
        """What the queue has too little of for a task with these claims."""
        return self._short(self._new(claims), self.allocated)

    def _new(self, claims: Mapping[str, Demand]) -> Demand:
        return total_of(demand for key, demand in claims.items() if not self.claims[key])

    def _short(self, demand: Mapping[str, float], taken: Mapping[str, float]) -> list[Shortage]:
        found = []
        for key, wanted in demand.items():
            if not self._fits({key: wanted}, taken):
                has, limit = taken.get(key, 0.0), self.limit.get(key, 0.0)
                amounts = (quantities.format(Fraction(each)) for each in (wanted, limit, has, wanted + has - limit))
                found.append(Shortage(self.holder, key, *amounts))
        return found

    def _fits(self, demand: Mapping[str, float], taken: Mapping[str, float]) -> bool:
        known = {device_class(key) for key in self.limit}
        return all(
            self._fits_one(key, amount + taken.get(key, 0.0))
            for key, amount in demand.items()
            if device_class(key) in known
        )

    def _fits_one(self, key: str, amount: float) -> bool:
        limit = self.limit.get(key)
        if key.startswith(MARK):
            return not limit or amount <= limit
        return limit is not None and amount <= limit
