"""What tasks demand of device classes through resource claims (spec 04 section 9.4).

A demand is an amount per key as queues write them: ``deviceclass/<class>`` for a number of devices,
``<dimension>.deviceclass/<class>`` for consumable capacity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stromboli.api import core, quantities
from stromboli.scheduler.core.elsewhere import Claimant
from stromboli.scheduler.core.objects import ClusterObjects
from stromboli.scheduler.core.records import Job, Queue, Task
from stromboli.scheduler.core.statuses import ALLOCATED_STATUSES

MARK = "deviceclass/"
EXACT_COUNT = ("", "ExactCount")

Demand = dict[str, float]


class Claims:
    """What tasks claim. With ``capacities`` consumable capacity counts as well as numbers."""

    def __init__(self, objects: ClusterObjects, *, capacities: bool) -> None:
        self._objects = objects
        self._capacities = capacities

    def of(self, task: Task) -> dict[str, Demand]:
        """Demand by claim; claims without any are left out."""
        return self.of_claimant(Claimant(task.namespace, task.uid, task.shape.pod))

    def of_claimant(self, claimant: Claimant) -> dict[str, Demand]:
        """The same for a pod of another scheduler's job."""
        pod = claimant.pod
        generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        found = {}
        for claim in pod.spec.resource_claims:
            key, spec = self._spec(claimant, claim, generated.get(claim.name))
            demand = self._demand(spec) if spec is not None else {}
            if demand:
                found[key] = demand
        return found

    def least(self, job: Job) -> Demand:
        """What the job's minimum demands: per role as often as the role's minimum, else of the first ``minMember``."""
        if job.role_minimums:
            return total_of(self._per_role(job))
        tasks = sorted(job.tasks.values(), key=lambda task: (task.namespace, task.name, task.uid))
        demands = [demand for task in tasks if (demand := total_of(self.of(task).values()))]
        return total_of(demands[: job.min_member])

    def _per_role(self, job: Job) -> Iterator[Demand]:
        examples = {task.role: task for task in job.tasks.values()}
        for role, minimum in job.role_minimums.items():
            if role in examples:
                demand = total_of(self.of(examples[role]).values())
                yield {key: amount * minimum for key, amount in demand.items()}

    def _spec(
        self, pod: Claimant, claim: core.PodResourceClaim, generated: str | None
    ) -> tuple[str, core.ResourceClaimSpec | None]:
        name = claim.resource_claim_name or generated
        if name:
            found = self._objects.get(core.ResourceClaim, name, pod.namespace)
            return f"{pod.namespace}/{name}", found.spec if found is not None else None
        template = self._objects.get(
            core.ResourceClaimTemplate, claim.resource_claim_template_name or "", pod.namespace
        )
        return f"{pod.uid}/{claim.name}", template.spec.spec if template is not None else None

    def _demand(self, spec: core.ResourceClaimSpec) -> Demand:
        demand: Demand = {}
        for request in spec.devices.requests:
            exact = request.exactly
            if exact is None or not exact.device_class_name or exact.allocation_mode not in EXACT_COUNT:
                continue
            count = exact.count or 1
            key = MARK + exact.device_class_name
            add(demand, {key: count})
            if self._capacities and exact.capacity is not None:
                add(
                    demand,
                    {
                        f"{dimension}.{key}": float(quantities.parse(str(quantity))) * count
                        for dimension, quantity in exact.capacity.requests.items()
                    },
                )
        return demand


def add(total: Demand, demand: Mapping[str, float], times: float = 1.0) -> None:
    """Adds a demand to a total, so many times."""
    for key, amount in demand.items():
        total[key] = total.get(key, 0.0) + amount * times


def total_of(demands: Iterable[Mapping[str, float]]) -> Demand:
    """Several demands together."""
    total: Demand = {}
    for demand in demands:
        add(total, demand)
    return total


def held_by(queue: Queue, claims: Claims) -> Demand:
    """What a queue's tasks hold, here and elsewhere; a claim that several of them share counts once."""
    shared: dict[str, Demand] = {}
    for claimant in queue.claimants:
        shared.update(claims.of_claimant(claimant))
    for job in queue.jobs.values():
        if job.allocated_count:
            for task in job.tasks.values():
                if task.status in ALLOCATED_STATUSES and task.shape.pod.spec.resource_claims:
                    shared.update(claims.of(task))
    return total_of(shared.values())
