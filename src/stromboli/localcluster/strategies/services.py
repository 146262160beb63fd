"""Services: a virtual address from a range, and node ports."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Any

from stromboli.api import kinds
from stromboli.localcluster.schemas.validating import bad, duplicate, missing, unsupported
from stromboli.localcluster.statuses import Cause
from stromboli.localcluster.storage import Object, Store
from stromboli.localcluster.strategies.common import Plain, set_defaults, spec_of

SERVICE_RANGE = "10.96.0.0/16"
NODE_PORTS = range(30000, 32768)
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


class Services(Plain):
    """Addresses and ports are free ones: taken are those of the services in ``store``."""

    def __init__(self, store: Store, address_range: str = SERVICE_RANGE) -> None:
        self._store = store
        self._network = ipaddress.ip_network(address_range)

    def default(self, obj: Object) -> None:
        spec = spec_of(obj)
        set_defaults(spec, type="ClusterIP", sessionAffinity="None")
        for port in spec.get("ports") or ():
            set_defaults(port, protocol="TCP", targetPort=port.get("port"))
            if not port.get("nodePort"):
                port.pop("nodePort", None)
        if spec["type"] != "ExternalName":
            set_defaults(spec, internalTrafficPolicy="Cluster", ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
        if spec["type"] in _WITH_NODE_PORTS:
            set_defaults(spec, externalTrafficPolicy="Cluster")
        self._allocate(spec)

    def _allocate(self, spec: dict[str, Any]) -> None:
        if spec["type"] == "ExternalName":
            return
        if not spec.get("clusterIP"):
            spec["clusterIP"] = self._free_address()
        set_defaults(spec, clusterIPs=[spec["clusterIP"]])
        if spec["type"] in _WITH_NODE_PORTS:
            for port in spec.get("ports") or ():
                if not port.get("nodePort"):
                    port["nodePort"] = self._free_port(spec)

    def _specs(self) -> Iterable[dict[str, Any]]:
        return (stored.object.get("spec", {}) for stored in self._store.list(kinds.SERVICES))

    def _free_address(self) -> str:
        taken = {spec.get("clusterIP") for spec in self._specs()}
        # The first address is the API server's own.
        hosts = self._network.hosts()
        next(hosts)
        return next(str(address) for address in hosts if str(address) not in taken)

    def _free_port(self, spec: dict[str, Any]) -> int:
        specs = [*self._specs(), spec]
        taken = {port.get("nodePort") for one in specs for port in one.get("ports") or ()}
        return next(port for port in NODE_PORTS if port not in taken)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}

    def prepare_update(self, obj: Object, old: Object) -> None:
        """Addresses and node ports that a manifest leaves out are kept."""
        spec, before = spec_of(obj), old["spec"]
        if spec.get("type", "ClusterIP") == "ExternalName" or before["type"] == "ExternalName":
            return
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if name in before:
                set_defaults(spec, **{name: before[name]})
        known = {(port["port"], port.get("protocol")): port.get("nodePort") for port in before.get("ports") or ()}
        if spec.get("type") in _WITH_NODE_PORTS:
            for port in spec.get("ports") or ():
                port_before = known.get((port["port"], port.get("protocol", "TCP")))
                if port_before:
                    set_defaults(port, nodePort=port_before)

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        return list(_check(obj["spec"], old["spec"] if old else None))


def _check(spec: dict[str, Any], old: dict[str, Any] | None) -> Iterator[Cause]:
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
        yield missing("spec.ports")
    types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]
    if spec["type"] not in types:
        yield unsupported("spec.type", spec["type"], types)
    names: set[str] = set()
    for index, port in enumerate(ports):
        yield from _check_port(port, f"spec.ports[{index}]", names, len(ports) > 1)
    if old and old.get("clusterIP") and spec.get("clusterIP") != old["clusterIP"] and old["type"] == spec["type"]:
        yield bad("spec.clusterIPs[0]", spec.get("clusterIPs"), "may not change once set")


def _check_port(port: dict[str, Any], path: str, names: set[str], several: bool) -> Iterator[Cause]:
    name = port.get("name") or ""
    if several and not name:
        yield missing(f"{path}.name")
    if name and name in names:
        yield duplicate(f"{path}.name", name)
    names.add(name)
    if not 1 <= (port.get("port") or 0) <= 65535:
        yield bad(f"{path}.port", port.get("port") or 0, "must be between 1 and 65535, inclusive")
