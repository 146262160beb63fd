"""PodDisruptionBudgets: how many of the selected pods may be evicted now."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.controllers.pods import controller_of, is_active, is_ready, with_condition, write_status
from stromboli.localcluster.controllers.running import Mapper, itself
from stromboli.localcluster.labels import selects
from stromboli.localcluster.nodes.timestamps import stamp
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.storage import Key, Object, Store

_SCALED = {one.kind: one for one in (kinds.REPLICA_SETS, kinds.DEPLOYMENTS, kinds.STATEFUL_SETS)}


class DisruptionController:
    """Keeps the status of PodDisruptionBudgets."""

    name = "disruption"

    def __init__(self, registry: Registry, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._now = now

    def sources(self) -> Mapping[Kind, Mapper]:
        """Budgets, and the pods they select."""
        return {kinds.POD_DISRUPTION_BUDGETS: itself, kinds.PODS: self._budgets_of}

    def _budgets_of(self, pod: Object) -> Iterable[tuple[str, str]]:
        for budget in budgets_of(pod, self._registry.store):
            yield budget["metadata"]["namespace"], budget["metadata"]["name"]

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Write one budget's status if it changed."""
        stored = self._registry.store.get(Key.of(kinds.POD_DISRUPTION_BUDGETS, namespace, name))
        if stored is None:
            return None
        budget = stored.object
        fresh = status(budget, self._registry.store, stamp(self._now()))
        await write_status(self._registry, kinds.POD_DISRUPTION_BUDGETS, budget, fresh)
        return None


def budgets_of(pod: Object, store: Store) -> list[Object]:
    """The budgets that select a pod."""
    labels = pod["metadata"].get("labels") or {}
    found = store.list(kinds.POD_DISRUPTION_BUDGETS, pod["metadata"]["namespace"])
    return [stored.object for stored in found if selects(stored.object["spec"].get("selector"), labels)]


def status(budget: Object, store: Store, now: str) -> Object:
    """A budget's status for the pods there are."""
    selector = budget["spec"].get("selector")
    pods = [stored.object for stored in store.list(kinds.PODS, budget["metadata"]["namespace"])]
    selected = [pod for pod in pods if is_active(pod) and selects(selector, pod["metadata"].get("labels") or {})]
    healthy = sum(map(is_ready, selected))
    expected = expected_pods(selected, store)
    desired = desired_healthy(budget["spec"], expected)
    allowed = max(healthy - desired, 0)
    before = budget.get("status") or {}
    condition = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    stamped = with_condition(before.get("conditions") or (), "DisruptionAllowed", *condition, "", now)
    return {
        **before,
        "observedGeneration": budget["metadata"].get("generation", 1),
        "expectedPods": expected,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "conditions": stamped,
    }


def expected_pods(selected: Sequence[Object], store: Store) -> int:
    """How many pods there should be: what ReplicaSets, Deployments and StatefulSets ask for; else as there are."""
    scales: dict[str, int] = {}
    others = 0
    for pod in selected:
        owner = _scaled_owner(pod, store)
        if owner is None:
            others += 1
        else:
            scales[owner["metadata"]["uid"]] = int(owner["spec"].get("replicas", 1))
    return sum(scales.values()) + others


def desired_healthy(spec: Object, count: int) -> int:
    """How many of ``count`` pods must stay healthy."""
    if spec.get("minAvailable") is not None:
        return min(_portion(spec["minAvailable"], count), count) if count else 0
    if spec.get("maxUnavailable") is not None:
        return max(count - _portion(spec["maxUnavailable"], count), 0)
    return 0


def _scaled_owner(obj: Object, store: Store) -> Object | None:
    """The controller of a pod that has a number of replicas; of a ReplicaSet's owner rather than of the ReplicaSet."""
    reference = controller_of(obj)
    kind = _SCALED.get(reference["kind"]) if reference else None
    if reference is None or kind is None:
        return None
    stored = store.get(Key.of(kind, obj["metadata"]["namespace"], reference["name"]))
    if stored is None or stored.object["metadata"]["uid"] != reference["uid"]:
        return None
    return _scaled_owner(stored.object, store) or stored.object


def _portion(value: object, count: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return math.ceil(count * int(value[:-1]) / 100)
    return int(str(value))
