"""``pods/eviction``: a deletion that disruption budgets can hold back (429)."""

from __future__ import annotations

from stromboli.api import kinds
from stromboli.localcluster import clock
from stromboli.localcluster.controllers.disruptions import budgets_of, status
from stromboli.localcluster.controllers.pods import is_active, is_ready, phase
from stromboli.localcluster.extending import Answer, SubresourceRequest
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.requests import DeleteOptions
from stromboli.localcluster.statuses import StatusError, bad_request, internal, too_many_requests
from stromboli.localcluster.storage import Object

VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


class Evictions:
    """Serves evictions. Budgets are judged by the pods of this moment, so that evictions at once cannot add up."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def __call__(self, request: SubresourceRequest) -> Answer:
        """Evict the pod, unless its budget forbids it."""
        body = request.body or {}
        named = (body.get("metadata") or {}).get("name")
        if named not in (None, "", request.name):
            raise bad_request(f"name in URL does not match name in Eviction object: {named}")
        pod = self._registry.read(kinds.PODS, request.namespace, request.name).object
        options = body.get("deleteOptions") or {}
        preconditions = options.get("preconditions") or {}
        if is_active(pod) and phase(pod) != "Pending":
            self._ask_budget(pod)
        await self._registry.delete(
            kinds.PODS,
            request.namespace,
            request.name,
            DeleteOptions(
                user=request.user,
                dry_run=request.dry_run or bool(options.get("dryRun")),
                grace_period=options.get("gracePeriodSeconds"),
                uid=preconditions.get("uid"),
                resource_version=preconditions.get("resourceVersion"),
                warn=request.warn,
            ),
        )
        return Answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)

    def _ask_budget(self, pod: Object) -> None:
        budgets = budgets_of(pod, self._registry.store)
        if not budgets:
            return
        if len(budgets) > 1:
            text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise internal(text)
        budget = budgets[0]
        fresh = status(budget, self._registry.store, clock.timestamp())
        if not is_ready(pod) and _lets_unhealthy_go(budget, fresh):
            return
        if fresh["disruptionsAllowed"] < 1:
            raise _held_back(budget["metadata"]["name"], fresh)


def _lets_unhealthy_go(budget: Object, fresh: Object) -> bool:
    policy = budget["spec"].get("unhealthyPodEvictionPolicy") or "IfHealthyBudget"
    return policy == "AlwaysAllow" or bool(fresh["currentHealthy"] >= fresh["desiredHealthy"] > 0)


def _held_back(name: str, fresh: Object) -> StatusError:
    needs, has = fresh["desiredHealthy"], fresh["currentHealthy"]
    text = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
    return too_many_requests(VIOLATED, details={"causes": [{"reason": "DisruptionBudget", "message": text}]})
