"""What pods hold that another scheduler's jobs consist of, where several share a cluster by hashing (ADR 0046).

The mirror counts a pod in its queue when both the pod and its PodGroup are this scheduler's business. Every other pod
that holds resources is counted here, in the queue that its PodGroup names, so that mirror and this together are what
the cluster holds: in each of the schedulers the same, in whatever order things arrive and however they are shared out.

Whose business an object is, the caller says. Pods that hold nothing leave no trace, and of the others there is who they
are, their group and what they weigh, which most of them have in common with many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from stromboli.api import core
from stromboli.api.requests import DEFAULT_RULES, RequestRules
from stromboli.scheduler.core import amounts, reading
from stromboli.scheduler.core.records import Attached
from stromboli.scheduler.core.statuses import ALLOCATED_STATUSES
from stromboli.scheduler.core.volumes import has_claims

Weight = tuple[tuple[str, float], ...]
"""Amounts by resource, in internal units; the same object for pods that weigh the same."""


PART = "part-of-the-cluster"
"""Among a cycle's options: whether nodes and jobs are known that are other schedulers' business. Without it, what this
scheduler has is the cluster."""
_WEIGHTS_KEPT = 1024
"""Weights that no pod has any more are looked for once there are more than this, or than two a pod."""


class Claimant(NamedTuple):
    """A pod as far as its claims are looked at."""

    namespace: str
    uid: str
    pod: core.Pod


def holds(pod: core.Pod) -> bool:
    """Whether a pod holds resources in the name of a group."""
    return bool(reading.job_id_of(pod)) and reading.status_of(pod) in ALLOCATED_STATUSES


class _Claims(NamedTuple):
    """Of a pod with claims, what they are read from, and what it asks for beside them."""

    pod: core.Pod
    request: Weight


class _Gang:
    """A PodGroup, or one that pods name and that is not known."""

    __slots__ = ("holders", "id", "known", "ours", "queue", "uid")

    def __init__(self, id: str) -> None:
        self.id = id
        self.known = self.ours = False
        self.uid = self.queue = ""
        self.holders: dict[str, _Holder] = {}
        """By ``namespace/name``."""


class _Holder:
    """A pod that holds something."""

    __slots__ = ("claims", "gang", "ours", "uid", "weight")

    def __init__(self, uid: str, gang: _Gang, weight: Weight, claims: _Claims | None, *, ours: bool) -> None:
        self.uid, self.gang, self.weight, self.ours = uid, gang, weight, ours
        self.claims = claims
        """None for the many that have none."""

    def is_still(self, uid: str, job_id: str, weight: Weight, *, ours: bool) -> bool:
        """Whether nothing about it has changed that matters here."""
        same = (self.uid, self.gang.id, self.ours, self.claims) == (uid, job_id, ours, None)
        return same and self.weight == weight

    @property
    def counts(self) -> bool:
        """Whether it is counted here: its group is known, and the mirror does not count it."""
        return self.gang.known and not (self.ours and self.gang.ours)


class Elsewhere:
    """Sums by queue, kept current with every pod and PodGroup of the cluster."""

    def __init__(
        self,
        attached: Callable[[core.Pod, str], Attached] = lambda pod, uid: (),
        rules: RequestRules = DEFAULT_RULES,
        default_queue: str = "default",
    ) -> None:
        self.rules = rules
        self.version = 0
        """Moves with every change of what is held."""
        self._attached = attached
        self._default_queue = default_queue
        self._gangs: dict[str, _Gang] = {}
        self._holders: dict[str, _Holder] = {}
        self._held: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._weights: dict[Weight, Weight] = {}
        self._claiming: dict[str, _Holder] = {}
        """Holders with claims, by ``namespace/name``."""
        self._stale = False

    def __len__(self) -> int:
        """Pods that are remembered."""
        return len(self._holders)

    # Events

    def apply_pod(self, pod: core.Pod, *, ours: bool) -> None:
        """A pod was added or changed."""
        key = f"{pod.namespace}/{pod.name}"
        request = self._request(pod) if holds(pod) else None
        if request is None:
            self._remove(key)
            return
        known, job_id = self._holders.get(key), reading.job_id_of(pod)
        claims = _Claims(_bare(pod), request) if _has_claims(pod) else None
        weight = self._with_volumes(claims, pod.uid) if claims else request
        if known is not None and claims is None and known.is_still(pod.uid, job_id, weight, ours=ours):
            return
        self._remove(key)
        gang = self._gang(job_id)
        holder = self._holders[key] = gang.holders[key] = _Holder(pod.uid, gang, weight, claims, ours=ours)
        if claims is not None:
            self._claiming[key] = holder
        self._count(holder, 1)

    def delete_pod(self, key: str, uid: str) -> bool:
        """A pod is gone, if that is still the one known under this ``namespace/name``; whether it was another's."""
        known = self._holders.get(key)
        if known is None or known.uid != uid:
            return False
        self._remove(key)
        return not known.ours

    def apply_pod_group(self, group: core.PodGroup, *, ours: bool) -> None:
        """A PodGroup was added or changed."""
        id_ = f"{group.namespace}/{group.name}"
        gang = self._gang(id_)
        queue = group.spec.queue or self._default_queue
        if (gang.known, gang.ours, gang.queue) != (True, ours, queue):
            self._file(gang, known=True, ours=ours, queue=queue)
        gang.uid = group.uid

    def delete_pod_group(self, key: str, uid: str) -> bool:
        """A PodGroup is gone, if that is still the one known; whether it was another's.

        What its pods hold is no queue's until it comes back.
        """
        gang = self._gangs.get(key)
        if gang is None or not gang.known or gang.uid != uid:
            return False
        foreign = not gang.ours
        self._file(gang, known=False, ours=False, queue="")
        self._forget_if_unused(gang)
        return foreign

    def notice(self, obj: core.Object) -> None:
        """An object was added, changed or removed on which it may depend what pods attach."""
        if isinstance(obj, core.PersistentVolumeClaim | core.PersistentVolume | core.StorageClass):
            self._stale = self._stale or bool(self._claiming)

    def reweigh(self) -> None:
        """Take in what is known about volumes by now."""
        if not self._stale:
            return
        self._stale = False
        for holder in self._claiming.values():
            assert holder.claims is not None
            weight = self._with_volumes(holder.claims, holder.uid)
            if weight is not holder.weight:
                self._count(holder, -1)
                holder.weight = weight
                self._count(holder, 1)

    def has_group(self, id_: str) -> bool:
        """Whether a PodGroup exists that is another scheduler's business."""
        gang = self._gangs.get(id_)
        return gang is not None and gang.known and not gang.ours

    # What is held

    def resources(self) -> set[str]:
        """Everything of which something is held."""
        return {name for held in self._held.values() for name in held} - {*self.rules.ignored}

    def held_in(self, queue: str) -> Mapping[str, float]:
        """What pods of a queue hold by resource, in internal units, without resources that devices account for."""
        held = self._held.get(queue, {})
        return {name: amount for name, amount in held.items() if name not in self.rules.ignored}

    def claimants(self) -> Iterator[tuple[str, Claimant]]:
        """Queue and pod of those that hold something through resource claims."""
        for key, holder in self._claiming.items():
            if holder.claims is not None and holder.claims.pod.spec.resource_claims and holder.counts:
                yield holder.gang.queue, Claimant(key.partition("/")[0], holder.uid, holder.claims.pod)

    # Bookkeeping

    def _file(self, gang: _Gang, *, known: bool, ours: bool, queue: str) -> None:
        for holder in gang.holders.values():
            self._count(holder, -1)
        gang.known, gang.ours, gang.queue = known, ours, queue
        for holder in gang.holders.values():
            self._count(holder, 1)

    def _remove(self, key: str) -> None:
        holder = self._holders.pop(key, None)
        if holder is None:
            return
        self._count(holder, -1)
        self._claiming.pop(key, None)
        del holder.gang.holders[key]
        self._forget_if_unused(holder.gang)

    def _forget_if_unused(self, gang: _Gang) -> None:
        if not gang.known and not gang.holders:
            self._gangs.pop(gang.id, None)

    def _count(self, holder: _Holder, sign: int) -> None:
        if not holder.counts:
            return
        self.version += 1
        held = self._held[holder.gang.queue]
        for name, amount in holder.weight:
            held[name] = held.get(name, 0.0) + sign * amount
            if not held[name]:
                del held[name]

    def _gang(self, id_: str) -> _Gang:
        gang = self._gangs.get(id_)
        if gang is None:
            gang = self._gangs[id_] = _Gang(id_)
        return gang

    def _request(self, pod: core.Pod) -> Weight | None:
        """None when it cannot be read: its own scheduler leaves it out as well, and says so."""
        try:
            return self._shared(amounts.bounded(amounts.request_of(pod, self.rules)))
        except (ValueError, ArithmeticError, TypeError):
            return None

    def _with_volumes(self, claims: _Claims, uid: str) -> Weight:
        return self._shared({**dict(claims.request), **dict(self._attached(claims.pod, uid))})

    def _shared(self, asked: Mapping[str, float]) -> Weight:
        if len(self._weights) > max(_WEIGHTS_KEPT, 2 * len(self._holders)):
            self._weights = {holder.weight: holder.weight for holder in self._holders.values()}
        weight = tuple(sorted((name, amount) for name, amount in asked.items() if amount))
        return self._weights.setdefault(weight, weight)


def _has_claims(pod: core.Pod) -> bool:
    return bool(pod.spec.resource_claims) or has_claims(pod.spec.volumes)


def _bare(pod: core.Pod) -> core.Pod:
    return core.Pod(
        metadata=core.ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid),
        spec=core.PodSpec(volumes=pod.spec.volumes, resource_claims=pod.spec.resource_claims),
        status=core.PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses),
    )
