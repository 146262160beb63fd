"""Defaults of pod specs, in pods and in the templates of everything that makes pods."""

from __future__ import annotations

import re
from typing import Any

from stromboli.api import quantities
from stromboli.localcluster.strategies.common import set_defaults

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_MODE = 0o644
_ENV_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


def default(spec: dict[str, Any]) -> None:
    """Fill in what the real server fills in."""
    set_defaults(
        spec, restartPolicy="Always", dnsPolicy="ClusterFirst", schedulerName="default-scheduler",
        terminationGracePeriodSeconds=30, securityContext={},
    )  # fmt: skip
    for field in CONTAINER_LISTS:
        for container in spec.get(field) or ():
            _default_container(container, bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    if spec.get("serviceAccountName"):
        set_defaults(spec, serviceAccount=spec["serviceAccountName"])


def _default_container(container: dict[str, Any], host_network: bool) -> None:
    set_defaults(
        container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File", resources={},
        imagePullPolicy=_pull_policy(container.get("image") or ""),
    )  # fmt: skip
    for port in container.get("ports") or ():
        set_defaults(port, protocol="TCP")
        if host_network and port.get("containerPort"):
            set_defaults(port, hostPort=port["containerPort"])
    for variable in container.get("env") or ():
        field = (variable.get("valueFrom") or {}).get("fieldRef")
        if field:
            set_defaults(field, apiVersion="v1")
    for probe in filter(None, (container.get(name) for name in _PROBES)):
        set_defaults(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
        if probe.get("httpGet"):
            set_defaults(probe["httpGet"], path="/", scheme="HTTP")
    _default_requests(container["resources"])


def _default_requests(resources: dict[str, Any]) -> None:
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _pull_policy(image: str) -> str:
    name = image.rpartition("/")[2]
    if "@" in name:
        return "IfNotPresent"
    tag = name.partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_volume(volume: dict[str, Any]) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(source) is not None:
            set_defaults(volume[source], defaultMode=_MODE)
    for part in (volume.get("projected") or {}).get("sources") or ():
        if part.get("serviceAccountToken"):
            set_defaults(part["serviceAccountToken"], expirationSeconds=3600)
    if volume.get("hostPath") is not None:
        set_defaults(volume["hostPath"], type="")


def qos_class(spec: dict[str, Any]) -> str:
    """``Guaranteed``, ``Burstable`` or ``BestEffort``."""
    containers = [one for field in ("initContainers", "containers") for one in spec.get(field) or ()]
    resources = [one.get("resources") or {} for one in containers]
    named = [amounts for one in resources for amounts in (one.get("requests"), one.get("limits")) if _counted(amounts)]
    if not named:
        return "BestEffort"
    guaranteed = all(
        len(_counted(one.get("limits"))) == 2 and _counted(one.get("requests")) == _counted(one.get("limits"))
        for one in resources
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _counted(amounts: dict[str, str] | None) -> dict[str, Any]:
    return {
        name: quantities.parse(amount)
        for name, amount in (amounts or {}).items()
        if name in ("cpu", "memory") and quantities.parse(amount) != 0
    }
