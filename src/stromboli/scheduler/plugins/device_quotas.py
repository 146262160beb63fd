"""Quotas of queues on device classes of dynamic resource allocation (spec 06 section 10.7).

A demand is an amount per key as queues write them: ``deviceclass/<class>`` for a number of devices,
``<dimension>.deviceclass/<class>`` for consumable capacity. A claim that several tasks of a queue share counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stromboli.api import core, quantities

if TYPE_CHECKING:
    from stromboli.scheduler.core.objects import ClusterObjects
    from stromboli.scheduler.core.records import Job, Task

MARK = "deviceclass/"
EXACT_COUNT = ("", "ExactCount")

Demand = dict[str, float]


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


class Claims:
    """What tasks claim. With ``capacities`` consumable capacity counts as well as numbers."""

    def __init__(self, objects: ClusterObjects, *, capacities: bool) -> None:
        self._objects = objects
        self._capacities = capacities

    def of(self, task: Task) -> dict[str, Demand]:
        """Demand by claim; claims without any are left out."""
        pod = task.shape.pod
        generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        found = {}
        for claim in pod.spec.resource_claims:
            key, spec = self._spec(task, claim, generated.get(claim.name))
            demand = self._demand(spec) if spec is not None else {}
            if demand:
                found[key] = demand
        return found

    def least(self, job: Job) -> Demand:
        """What the job's minimum demands: per role as often as the role's minimum, else of the first ``minMember``."""
        if job.role_minimums:
            return _sum(self._per_role(job))
        tasks = sorted(job.tasks.values(), key=lambda task: (task.namespace, task.name, task.uid))
        demands = [demand for task in tasks if (demand := _sum(self.of(task).values()))]
        return _sum(demands[: job.min_member])

    def _per_role(self, job: Job) -> Iterator[Demand]:
        examples = {task.role: task for task in job.tasks.values()}
        for role, minimum in job.role_minimums.items():
            if role in examples:
                demand = _sum(self.of(examples[role]).values())
                yield {key: amount * minimum for key, amount in demand.items()}

    def _spec(
        self, task: Task, claim: core.PodResourceClaim, generated: str | None
    ) -> tuple[str, core.ResourceClaimSpec | None]:
        name = claim.resource_claim_name or generated
        if name:
            found = self._objects.get(core.ResourceClaim, name, task.namespace)
            return f"{task.namespace}/{name}", found.spec if found is not None else None
        template = self._objects.get(
            core.ResourceClaimTemplate, claim.resource_claim_template_name or "", task.namespace
        )
        return f"{task.uid}/{claim.name}", template.spec.spec if template is not None else None

    def _demand(self, spec: core.ResourceClaimSpec) -> Demand:
        demand: Demand = {}
        for request in spec.devices.requests:
            exact = request.exactly
            if exact is None or not exact.device_class_name or exact.allocation_mode not in EXACT_COUNT:
                continue
            count = exact.count or 1
            key = MARK + exact.device_class_name
            _add(demand, {key: count})
            if self._capacities and exact.capacity is not None:
                _add(
                    demand,
                    {
                        f"{dimension}.{key}": float(quantities.parse(str(quantity))) * count
                        for dimension, quantity in exact.capacity.requests.items()
                    },
                )
        return demand


@dataclass(slots=True)
class DeviceAccount:
    """What one queue may have, has and has promised."""

    limit: Demand
    allocated: Demand = field(default_factory=dict)
    inqueue: Demand = field(default_factory=dict)
    claims: Counter[str] = field(default_factory=Counter)
    """Tasks by claim."""

    def admits(self, claims: Mapping[str, Demand]) -> bool:
        """Whether a task with these claims may be placed."""
        new = _sum(demand for key, demand in claims.items() if not self.claims[key])
        return self._fits(new, self.allocated)

    def enqueues(self, demand: Demand) -> bool:
        """Whether a job that demands this at least may be admitted."""
        return self._fits(demand, _sum((self.allocated, self.inqueue)))

    def promise(self, demand: Demand) -> None:
        """A job that demands this at least was admitted."""
        _add(self.inqueue, demand)

    def charge(self, claims: Mapping[str, Demand]) -> None:
        """A task with these claims was placed."""
        for key, demand in claims.items():
            self.claims[key] += 1
            if self.claims[key] == 1:
                _add(self.allocated, demand)

    def release(self, claims: Mapping[str, Demand]) -> None:
        """The reverse of :meth:`charge`."""
        for key, demand in claims.items():
            self.claims[key] -= 1
            if self.claims[key] == 0:
                _add(self.allocated, demand, -1.0)

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


def _add(total: Demand, demand: Mapping[str, float], times: float = 1.0) -> None:
    for key, amount in demand.items():
        total[key] = total.get(key, 0.0) + amount * times


def _sum(demands: Iterable[Mapping[str, float]]) -> Demand:
    total: Demand = {}
    for demand in demands:
        _add(total, demand)
    return total
