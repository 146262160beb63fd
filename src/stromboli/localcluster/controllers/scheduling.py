"""A minimal ``default-scheduler``, so that Deployments and plain pods run: the first node that fits.

Looked at are readiness, ``unschedulable``, taints, the node selector, required node affinity and resource requests
(with the number of pods). No scoring, no preemption, no pod affinity: for these there is a real scheduler.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from stromboli.api import kinds, quantities
from stromboli.api.kinds import Kind
from stromboli.localcluster.controllers.pods import FINISHED, phase, with_condition, write_status
from stromboli.localcluster.controllers.running import Mapper
from stromboli.localcluster.nodes.timestamps import stamp
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.statuses import StatusError
from stromboli.localcluster.storage import Key, Object
from stromboli.localcluster.subresources.binding import bind

log = logging.getLogger(__name__)

NAME = "default-scheduler"
BATCH = 50
"""Pods placed before others get a turn."""
REST_FACTOR = 4
"""The pause after a round, as a multiple of its length: thousands of pods that come one by one make few rounds."""
LONGEST_REST = 0.5
ROUND = ("", "round")
"""The one key of this controller: every change asks for a round over all waiting pods."""

Amounts: TypeAlias = dict[str, int]
"""Thousandths by resource name."""


class DefaultScheduler:
    """Binds waiting pods of the default scheduler."""

    name = NAME

    def __init__(self, registry: Registry, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._now = now
        self._waiting: set[tuple[str, str]] = set()
        self._rest_until = 0.0

    def sources(self) -> Mapping[Kind, Mapper]:
        """Pods that wait or go away, and nodes."""
        return {kinds.PODS: self._interesting, kinds.NODES: lambda node: (ROUND,)}

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """One round: every waiting pod gets the first node that fits, or a condition that says that none does."""
        started = time.monotonic()
        if started < self._rest_until:
            return self._rest_until - started
        waiting = self._present()
        if waiting:
            await self._round(waiting)
        finished = time.monotonic()
        self._rest_until = finished + min(REST_FACTOR * (finished - started), LONGEST_REST)
        return None

    async def _round(self, waiting: Sequence[Object]) -> None:
        pods = [stored.object for stored in self._registry.store.list(kinds.PODS)]
        nodes = [stored.object for stored in self._registry.store.list(kinds.NODES)]
        free = free_amounts(nodes, pods)
        reached: dict[bytes, int] = {}
        for number, pod in enumerate(waiting, start=1):
            await self._place(pod, nodes, free, reached)
            if number % BATCH == 0:
                await asyncio.sleep(0)  # nothing here waits for anything: let requests in between

    async def _place(
        self, pod: Object, nodes: Sequence[Object], free: dict[str, Amounts], reached: dict[bytes, int]
    ) -> None:
        """Bind one pod. ``reached``: where the search for an equal pod ended, since room only shrinks in a round."""
        demand = demand_of(pod)
        place = reached[demand] = first_fit(pod, nodes, free, reached.get(demand, 0))
        metadata = pod["metadata"]
        try:
            if place == len(nodes):
                await self._explain(pod, len(nodes))
            else:
                node = nodes[place]["metadata"]["name"]
                await bind(self._registry, metadata["namespace"], metadata["name"], node, uid=metadata["uid"])
                _take(free[node], requests(pod))
        except StatusError as error:
            log.debug("pod %s/%s: %s", metadata["namespace"], metadata["name"], error)

    def _interesting(self, pod: Object) -> Iterable[tuple[str, str]]:
        """A round is due when a pod waits, or when one gives its place back to those that do."""
        if is_waiting(pod):
            self._waiting.add((pod["metadata"]["namespace"], pod["metadata"]["name"]))
        elif not pod["metadata"].get("deletionTimestamp") and phase(pod) not in FINISHED:
            return ()
        return (ROUND,) if self._waiting else ()

    def _present(self) -> list[Object]:
        """The waiting pods, oldest first; those that wait no longer are forgotten."""
        found = {place: self._registry.store.get(Key.of(kinds.PODS, *place)) for place in self._waiting}
        pods = [stored.object for stored in found.values() if stored is not None and is_waiting(stored.object)]
        self._waiting = {(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods}
        return sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    async def _explain(self, pod: Object, count: int) -> None:
        stored = self._registry.store.get(Key.of(kinds.PODS, pod["metadata"]["namespace"], pod["metadata"]["name"]))
        if stored is None:
            return
        status = stored.object.get("status") or {}
        message = f"0/{count} nodes are available."
        conditions = with_condition(
            status.get("conditions") or (), "PodScheduled", "False", "Unschedulable", message, stamp(self._now())
        )
        await write_status(self._registry, kinds.PODS, stored.object, {**status, "conditions": conditions})


def is_waiting(pod: Object) -> bool:
    """Whether a pod is for this scheduler to place."""
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and spec.get("schedulerName", NAME) == NAME
        and not spec.get("schedulingGates")
        and not pod["metadata"].get("deletionTimestamp")
        and phase(pod) not in FINISHED
    )


def free_amounts(nodes: Iterable[Object], pods: Iterable[Object]) -> dict[str, Amounts]:
    """What is free on each node."""
    free = {
        node["metadata"]["name"]: {
            name: quantities.milli(amount)
            for name, amount in ((node.get("status") or {}).get("allocatable") or {}).items()
        }
        for node in nodes
    }
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node in free and phase(pod) not in FINISHED:
            _take(free[node], requests(pod))
    return free


def requests(pod: Object) -> Amounts:
    """What a pod asks for: its containers' sum or, where larger, its largest init container; and to be one pod."""
    total: Amounts = {}
    for container in pod["spec"]["containers"]:
        for name, amount in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] = total.get(name, 0) + quantities.milli(amount)
    for container in pod["spec"].get("initContainers") or ():
        for name, amount in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] = max(total.get(name, 0), quantities.milli(amount))
    return {**total, "pods": 1000}


def demand_of(pod: Object) -> bytes:
    """What decides where a pod fits, to tell equal pods."""
    spec = pod["spec"]
    rest = [spec.get(field) for field in ("nodeSelector", "affinity", "tolerations")]
    return orjson.dumps([requests(pod), rest], option=orjson.OPT_SORT_KEYS)


def first_fit(pod: Object, nodes: Sequence[Object], free: Mapping[str, Amounts], start: int = 0) -> int:
    """The place of the first node from ``start`` on that takes the pod; the number of nodes when none does."""
    wanted = requests(pod)
    for place in range(start, len(nodes)):
        room = free[nodes[place]["metadata"]["name"]]
        fits = all(amount <= room.get(resource, 0) for resource, amount in wanted.items())
        if fits and admits(nodes[place], pod):
            return place
    return len(nodes)


def admits(node: Object, pod: Object) -> bool:
    """Whether a node takes a pod, resources aside."""
    spec = node.get("spec") or {}
    labels = node["metadata"].get("labels") or {}
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    selector = pod["spec"].get("nodeSelector") or {}
    return (
        ready
        and not spec.get("unschedulable")
        and all(labels.get(key) == value for key, value in selector.items())
        and _affinity(pod, node)
        and all(_tolerated(taint, pod["spec"].get("tolerations") or ()) for taint in spec.get("taints") or ())
    )


def _tolerated(taint: Mapping[str, Any], tolerations: Sequence[Mapping[str, Any]]) -> bool:
    if taint.get("effect") == "PreferNoSchedule":
        return True
    for toleration in tolerations:
        if toleration.get("effect") not in (None, "", taint.get("effect")):
            continue
        if toleration.get("operator") == "Exists":
            if toleration.get("key") in (None, "", taint["key"]):
                return True
        elif toleration.get("key") == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or ""):
            return True
    return False


def _affinity(pod: Object, node: Object) -> bool:
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    return any(_term(term, node) for term in affinity.get("nodeSelectorTerms") or ())


def _term(term: Mapping[str, Any], node: Object) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    labels = node["metadata"].get("labels") or {}
    if not expressions and not fields:
        return False
    return all(_requirement(one, labels) for one in expressions) and all(
        _requirement(one, {"metadata.name": node["metadata"]["name"]}) for one in fields
    )


def _requirement(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator if value is not None and _is_number(value) and values and _is_number(values[0]):
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
        case _:
            return False


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()


def _take(free: Amounts, wanted: Amounts) -> None:
    for name, amount in wanted.items():
        free[name] = free.get(name, 0) - amount
