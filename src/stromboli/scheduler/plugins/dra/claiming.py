"""The filter of device claims, and the books of what a cycle promises (spec 06 section 17.10).

Whether a node has the devices is worked out per content of the claims, so that the pods of a gang, each with claims of
its own from one template, share the answers; an answer is asked for again when devices that the node can use were taken
or given back.

Where the original refuses a pod while another pod's allocation of their common claim is in flight, here the second pod
joins the first: a gang that shares a claim could never be placed otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from stromboli.api import core
from stromboli.scheduler.core.extensions import BindExtension, DeviceGrant
from stromboli.scheduler.core.plugin import PlacementRefused, Refusals
from stromboli.scheduler.core.reasons import Code, Reason
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.scheduler.plugins.dra.allocator import STEPS_PER_SECOND, OutOfSteps, Selectors, Steps, allocate
from stromboli.scheduler.plugins.dra.features import Features, features_of
from stromboli.scheduler.plugins.dra.inventory import Inventory
from stromboli.scheduler.plugins.dra.requests import BadClaim, ClaimNeeds, missing_class, needs_of
from stromboli.scheduler.plugins.dra.tainting import TaintRules
from stromboli.scheduler.plugins.dra.taking import Taken, uses
from stromboli.scheduler.plugins.promises import Holder, Promises

if TYPE_CHECKING:
    import numpy.typing as npt

    from stromboli.scheduler.core.records import Node, Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View
    from stromboli.scheduler.plugins.selecting import NodeLabels

NOT_HERE = Reason("resourceclaim not available on the node", Code.UNRESOLVABLE)
CANNOT_ALLOCATE = Reason("cannot allocate all claims", Code.UNRESOLVABLE)
TIMED_OUT = Reason("timed out trying to allocate devices", Code.UNRESOLVABLE)
IN_USE = "resourceclaim in use"
DEFAULT_SECONDS = 10
MOST_CONSUMERS = 256
"""Pods that one claim can be reserved for."""
_NODES_OF_TIME = 10
"""The time that one node may cost is given so many times for all nodes together."""

_FACTS, _PROMISES = "device-facts", "device-promises"
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


class ClaimProblem(Exception):
    """The claims of a pod cannot be tried on any node; the text is the reason that users see."""


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of a pod, by whether they have devices, written or promised."""

    allocated: tuple[tuple[core.ResourceClaim, core.DeviceAllocation], ...] = ()
    open: tuple[core.ResourceClaim, ...] = ()


@dataclass(slots=True)
class _Facts:
    """What is read of slices and claims, kept from cycle to cycle until some of them change."""

    versions: tuple[object, int]
    """Of what is offered, and of claims."""
    inventory: Inventory
    selectors: Selectors
    allocated: Taken


@dataclass(slots=True)
class _Answers:
    """About claims of one content: per row the refusal and when it was asked for, and the steps spent so far."""

    needs: tuple[ClaimNeeds, ...]
    refusals: Refusals
    asked: npt.NDArray[np.int64]
    spent: int = 0


@dataclass(slots=True)
class DeviceClaims:
    """Answers about nodes for pods with device claims. ``limit`` is in steps a node, None for no limit."""

    view: View
    labels: NodeLabels
    limit: int | None
    reasons: list[Reason] = field(default_factory=lambda: [NOT_HERE, CANNOT_ALLOCATE, TIMED_OUT])
    searches: int = 0
    """How often the allocator was asked."""
    _promises: Promises[core.DeviceAllocation] = field(init=False)
    _features: Features = field(init=False)
    _taken: Taken | None = None
    _stamps: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _pods: dict[int, tuple[int, PodClaims]] = field(default_factory=dict)
    _answers: dict[bytes, _Answers] = field(default_factory=dict)
    _granted: dict[str, tuple[DeviceGrant, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._promises = promises_of(self.view)
        self._features = features_of(self.view)
        self._stamps = np.zeros(self.view.nodes.count, dtype=np.int64)

    # Questions

    @staticmethod
    def concerns(task: Task) -> bool:
        """Whether the pod has claims."""
        return bool(task.shape.pod.spec.resource_claims)

    def prepare(self, task: Task) -> str | None:
        """Why the pod's claims cannot be tried on any node."""
        if not self.concerns(task):
            return None
        try:
            self._check_own(task)
            for claim, _ in self._claims(task).allocated:
                self._check_use(claim, task)
            for claim in self._claims(task).open:
                missing = missing_class(claim, self._class)
                if missing is not None:
                    raise ClaimProblem(missing)
        except ClaimProblem as problem:
            return str(problem)
        return None

    def refuse(self, task: Task, rows: Rows) -> Refusals | None:
        """Rows where an allocated claim cannot be used, or the others cannot be allocated."""
        try:
            claims = self._claims(task)
            needs = [needs_of(claim, self._class, self._features) for claim in claims.open]
        except (ClaimProblem, BadClaim) as problem:
            code = Code.ERROR if isinstance(problem, BadClaim) else Code.UNRESOLVABLE
            return np.full(len(rows), self._reason(Reason(str(problem), code)), dtype=np.uint8)
        refusals = np.zeros(len(rows), dtype=np.uint8)
        for _, allocation in claims.allocated:
            if allocation.node_selector is not None:
                refusals[~self.labels.matches_any(allocation.node_selector.node_selector_terms, rows)] = 1
        if needs:
            left = refusals == 0
            refusals[left] = self._allocatable(needs, rows[left])
        return refusals

    def _allocatable(self, needs: Sequence[ClaimNeeds], rows: Rows) -> Refusals:
        key = _ENCODER.encode([(each.claim.namespace, each.claim.spec) for each in needs])
        answers = self._answers.get(key)
        if answers is None:
            count = self.view.nodes.count
            answers = _Answers(tuple(needs), np.zeros(count, dtype=np.uint8), np.full(count, -1, dtype=np.int64))
            self._answers[key] = answers
        for row in rows[answers.asked[rows] != self._stamps[rows]].tolist():
            node = self.view.node_list[row]
            answers.refusals[row] = 0 if node is None else self._try(answers, node)
            answers.asked[row] = self._stamps[row]
        return answers.refusals[rows]

    def _try(self, answers: _Answers, node: Node) -> int:
        if self.limit is not None and answers.spent >= self.limit * _NODES_OF_TIME:
            return self._reason(TIMED_OUT)
        steps = Steps(self.limit)
        try:
            if self._allocate(answers.needs, node, steps) is not None:
                return 0
            return self._reason(self._shortage(node))
        except OutOfSteps:
            return self._reason(TIMED_OUT)
        except BadClaim as error:
            return self._reason(Reason(str(error), Code.ERROR))
        finally:
            if self.limit is not None and steps.left is not None:
                answers.spent += self.limit - steps.left

    def _allocate(self, needs: Sequence[ClaimNeeds], node: Node, steps: Steps) -> list[core.DeviceAllocation] | None:
        if node.resource is None:
            return None
        self.searches += 1
        facts = self._facts()
        pools, taken = facts.inventory.pools(node.resource), self._devices_taken()
        return allocate(needs, node.name, pools, taken, facts.selectors, steps)

    def _shortage(self, node: Node) -> Reason:
        pools = self._facts().inventory.pools(node.resource) if node.resource is not None else ()
        invalid = ", ".join(pool.invalid for pool in pools if pool.invalid)
        return Reason(invalid, Code.UNRESOLVABLE) if invalid else CANNOT_ALLOCATE

    def _reason(self, reason: Reason) -> int:
        """The code of a reason in refusals; a new one is added."""
        if reason not in self.reasons:
            if len(self.reasons) == np.iinfo(np.uint8).max:  # no cluster is that inventive; the first texts tell enough
                return self.reasons.index(CANNOT_ALLOCATE) + 1
            self.reasons.append(reason)
        return self.reasons.index(reason) + 1

    # Books

    def placed(self, task: Task, node: Node) -> None:
        """Promises devices to a task's claims. Raises PlacementRefused and changes nothing when it cannot."""
        if not self.concerns(task):
            return
        try:
            claims = self._claims(task)
            needs = [needs_of(claim, self._class, self._features) for claim in claims.open]
            found = self._allocate(needs, node, Steps(self.limit)) if needs else []
            for claim, _ in claims.allocated:
                self._check_use(claim, task)
        except (ClaimProblem, BadClaim) as problem:
            raise PlacementRefused(str(problem)) from problem
        except OutOfSteps:
            raise PlacementRefused(TIMED_OUT.text) from None
        if found is None:
            raise PlacementRefused(CANNOT_ALLOCATE.text)
        self._promise(task, node, [*claims.allocated, *zip(claims.open, found, strict=True)])

    def _promise(
        self, task: Task, node: Node, claims: Sequence[tuple[core.ResourceClaim, core.DeviceAllocation]]
    ) -> None:
        holder, grants = Holder.of(task, node), []
        for claim, allocation in claims:
            written = claim.status.allocation is not None
            grants.append(DeviceGrant(claim.name, claim.uid, None if written else allocation))
            if not written and self._promises.add(claim, allocation, holder):
                self._take(allocation)
        self._granted[task.uid] = tuple(grants)

    def removed(self, task: Task, node: Node) -> None:
        """Takes back what was promised to a task; what an evicted pod uses it keeps until it is gone."""
        if task.uid not in self._granted or task.status == TaskStatus.RELEASING:
            return
        holder = Holder.of(task, node)
        for grant in self._granted.pop(task.uid):
            if grant.allocation is not None:
                freed = self._promises.drop((task.namespace, grant.claim), holder)
                if freed is not None:
                    self._give_back(freed)

    def extension(self, task: Task) -> BindExtension | None:
        """What the shell is to write before the task is bound."""
        grants = self._granted.get(task.uid)
        return BindExtension(devices=grants) if grants else None

    def _take(self, allocation: core.DeviceAllocation) -> None:
        self._devices_taken().add(allocation)
        self._changed(allocation)

    def _give_back(self, allocation: core.DeviceAllocation) -> None:
        self._devices_taken().remove(allocation)
        self._changed(allocation)

    def _changed(self, allocation: core.DeviceAllocation) -> None:
        """Answers about nodes that can use these devices do not hold any more."""
        homes = self._facts().inventory.homes
        names = {homes.get(device) for device, _ in uses(allocation)}
        if None in names:
            self._stamps += 1
            return
        for name in names:
            node = self.view.nodes_by_name.get(name or "")
            if node is not None and node.row >= 0:
                self._stamps[node.row] += 1

    # What there is

    def _claims(self, task: Task) -> PodClaims:
        """The claims of pods of this shape. Raises ClaimProblem."""
        known = self._pods.get(task.shape.index)
        if known is not None and known[0] == self._promises.version:
            return known[1]
        allocated, still_open = [], []
        for claim in claims_of(task, self._claim):
            allocation = claim.status.allocation or self._promises.get(claim)
            if allocation is not None:
                allocated.append((claim, allocation))
            else:
                still_open.append(claim)
        claims = PodClaims(tuple(allocated), tuple(still_open))
        self._pods[task.shape.index] = (self._promises.version, claims)
        return claims

    def _claim(self, namespace: str, name: str) -> core.ResourceClaim | None:
        return self.view.objects.get(core.ResourceClaim, name, namespace)

    def _class(self, name: str) -> core.DeviceClass | None:
        return self.view.objects.get(core.DeviceClass, name)

    def _check_own(self, task: Task) -> None:
        """Raises ClaimProblem when a claim made for a pod of this name was made for another."""
        generated = {status.resource_claim_name for status in task.shape.pod.status.resource_claim_statuses}
        for claim in claims_of(task, self._claim):
            owner = claim.controller
            if claim.name in generated and (owner is None or owner.uid != task.uid):
                who = f"ResourceClaim {claim.namespace}/{claim.name}"
                raise ClaimProblem(f"{who} was not created for pod {task.key} (pod is not owner)")

    def _check_use(self, claim: core.ResourceClaim, task: Task) -> None:
        consumers = {consumer.uid for consumer in claim.status.reserved_for} | self._promises.users(claim)
        if task.uid not in consumers and len(consumers) >= MOST_CONSUMERS:
            raise ClaimProblem(IN_USE)

    def _facts(self) -> _Facts:
        objects = self.view.objects
        offered = (
            self._features,
            objects.version(core.ResourceSlice),
            # Rules may name classes.
            (objects.version(core.DeviceTaintRule), objects.version(core.DeviceClass)) if self._features.taints else (),
        )
        versions = (offered, objects.version(core.ResourceClaim))
        facts = self.view.memory.get(_FACTS)
        if isinstance(facts, _Facts) and facts.versions == versions:
            return facts
        if isinstance(facts, _Facts) and facts.versions[0] == offered:
            inventory, selectors = facts.inventory, facts.selectors
        else:
            rules = TaintRules(objects.all(core.DeviceTaintRule).values(), self._class)
            inventory = Inventory(objects.all(core.ResourceSlice).values(), self._features, rules)
            selectors = Selectors()
        allocated = Taken(inventory.draws)
        for claim in objects.all(core.ResourceClaim).values():
            if claim.status.allocation is not None:
                allocated.add(claim.status.allocation)
        facts = self.view.memory[_FACTS] = _Facts(versions, inventory, selectors, allocated)
        return facts

    def _devices_taken(self) -> Taken:
        """Devices that others have; worked out when first asked for."""
        if self._taken is None:
            self._taken = self._facts().allocated.copy()
            for (namespace, name), allocation in self._promises.items():
                claim = self._claim(namespace, name)
                if claim is None or claim.status.allocation is None:
                    self._taken.add(allocation)
        return self._taken


def promises_of(view: View) -> Promises[core.DeviceAllocation]:
    """Allocations that are decided and not written yet, at the beginning of this cycle."""
    promises = view.memory.setdefault(_PROMISES, Promises[core.DeviceAllocation]())
    assert isinstance(promises, Promises)
    promises.tidy(
        view,
        lambda key: view.objects.get(core.ResourceClaim, key[1], key[0]),
        lambda claim: claim.status.allocation is not None,
    )
    return promises


def claims_of(task: Task, find: Callable[[str, str], core.ResourceClaim | None]) -> list[core.ResourceClaim]:
    """The claims of a pod, each once.

    Raises:
        ClaimProblem: one has not been made yet, does not exist or is being deleted.
    """
    pod, found = task.shape.pod, {}
    generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_name
        if name is None:
            if reference.name not in generated:
                raise ClaimProblem(f'pod "{task.key}": ResourceClaim not created yet')
            name = generated[reference.name]
        if name is None:
            continue  # the template asked for nothing
        claim = find(task.namespace, name)
        if claim is None:
            raise ClaimProblem(f'resourceclaim.resource.k8s.io "{name}" not found')
        if claim.deleting:
            raise ClaimProblem(f'resourceclaim "{name}" is being deleted')
        found[claim.name] = claim
    return list(found.values())


def steps_of(seconds: object) -> int | None:
    """The limit that ``dynamicresources.filterTimeoutSeconds`` stands for: negative or absent the default, 0 none."""
    wanted = seconds if isinstance(seconds, int) and not isinstance(seconds, bool) and seconds >= 0 else DEFAULT_SECONDS
    return wanted * STEPS_PER_SECOND or None
