"""Endpoints of Services with a selector: addresses of pods that run, ready or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.controllers.pods import FINISHED, is_ready, phase
from stromboli.localcluster.controllers.running import Mapper, itself
from stromboli.localcluster.labels import equals
from stromboli.localcluster.registry import Registry
from stromboli.localcluster.storage import Key, Object


class EndpointsController:
    """Keeps Endpoints in step with Services and pods. EndpointSlices are not made."""

    name = "endpoints"

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def sources(self) -> Mapping[Kind, Mapper]:
        """Services, and the pods they select."""
        return {kinds.SERVICES: itself, kinds.PODS: self._services_of}

    def _services_of(self, pod: Object) -> Iterable[tuple[str, str]]:
        labels = pod["metadata"].get("labels") or {}
        namespace = pod["metadata"]["namespace"]
        for stored in self._registry.store.list(kinds.SERVICES, namespace):
            if equals(stored.object["spec"].get("selector"), labels):
                yield namespace, stored.key.name

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Write one Service's Endpoints if they changed."""
        service = self._registry.store.get(Key.of(kinds.SERVICES, namespace, name))
        present = self._registry.store.get(Key.of(kinds.ENDPOINTS, namespace, name))
        if service is None:
            if present is not None:
                await self._registry.delete(kinds.ENDPOINTS, namespace, name)
            return None
        selector = service.object["spec"].get("selector")
        if not selector or service.object["metadata"].get("deletionTimestamp"):
            return None
        pods = [stored.object for stored in self._registry.store.list(kinds.PODS, namespace)]
        wanted = subsets(service.object, [pod for pod in pods if equals(selector, pod["metadata"].get("labels") or {})])
        if present is None:
            metadata = {"name": name, "namespace": namespace, "labels": service.object["metadata"].get("labels") or {}}
            body = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": wanted}
            await self._registry.create(kinds.ENDPOINTS, body)
        elif (present.object.get("subsets") or []) != wanted:
            await self._registry.update(kinds.ENDPOINTS, {**present.object, "subsets": wanted})
        return None


def subsets(service: Object, pods: Sequence[Object]) -> list[Object]:
    """The subsets of a Service's Endpoints for the pods it selects."""
    ready: list[Object] = []
    unready: list[Object] = []
    keep_unready = bool(service["spec"].get("publishNotReadyAddresses"))
    for pod in pods:
        address = (pod.get("status") or {}).get("podIP")
        if not address or phase(pod) in FINISHED or (pod["metadata"].get("deletionTimestamp") and not keep_unready):
            continue
        reference = {"kind": "Pod", "namespace": pod["metadata"]["namespace"], "name": pod["metadata"]["name"],
                     "uid": pod["metadata"]["uid"]}  # fmt: skip
        entry = {"ip": address, "nodeName": pod["spec"].get("nodeName", ""), "targetRef": reference}
        if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == service["metadata"]["name"]:
            entry["hostname"] = pod["spec"]["hostname"]
        (ready if keep_unready or is_ready(pod) else unready).append(entry)
    if not ready and not unready:
        return []
    subset: Object = {"ports": _ports(service, pods)}
    if ready:
        subset["addresses"] = ready
    if unready:
        subset["notReadyAddresses"] = unready
    return [subset]


def _ports(service: Object, pods: Sequence[Object]) -> list[Object]:
    ports = []
    for port in service["spec"].get("ports") or ():
        entry: Object = {"port": _target(port, pods), "protocol": port.get("protocol", "TCP")}
        if port.get("name"):
            entry["name"] = port["name"]
        ports.append(entry)
    return ports


def _target(port: Object, pods: Sequence[Object]) -> int:
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    for pod in pods:
        for container in pod["spec"]["containers"]:
            for candidate in container.get("ports") or ():
                if candidate.get("name") == target:
                    return int(candidate["containerPort"])
    return int(target) if str(target).isdigit() else int(port["port"])
