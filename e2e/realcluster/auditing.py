"""Least privilege, checked: what the API server's audit log shows against what the chart's roles grant.

Two faults: a request that was forbidden (a permission is missing), and a verb that is granted but was never used by the
whole suite (a permission too many), unless :data:`EXPECTED_UNUSED` says why it is granted nevertheless.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from stromboli.kube.json import JsonObject

PREFIX = "system:serviceaccount:"


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """One verb on one resource, for one ServiceAccount."""

    account: str
    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.account}: {self.verb} {self.resource}" + (f".{self.group}" if self.group else "")


Reasons: TypeAlias = Mapping[tuple[str, str, str], str]
"""``(component, resource or resource.group, verb)`` to the reason why it is granted without being used by the suite.

The component is the end of the ServiceAccount's name.
"""

_OWNERS = "asked by admission when owner references are written, and not in the audit log"
_BARE_PODS = "annotations of bare pods' owners that are in no cache"
_VOLUMES = "binding of delayed volumes: kwok has no provisioner"
_LEFT_BEHIND = "only when an object of the same name is there already"
_DEVICES = "devices need a driver that publishes them"
_FIRST_QUEUES = "scheduler and controllers both make the first queues; one of them is first"
EXPECTED_UNUSED: Reasons = {
    ("controllers", "jobs/finalizers.batch.volcano.sh", "update"): _OWNERS,
    ("controllers", "cronjobs/finalizers.batch.volcano.sh", "update"): _OWNERS,
    ("controllers", "jobflows/finalizers.flow.volcano.sh", "update"): _OWNERS,
    ("controllers", "pods/finalizers", "update"): _OWNERS,
    ("controllers", "replicasets/finalizers.apps", "update"): _OWNERS,
    ("controllers", "statefulsets/finalizers.apps", "update"): _OWNERS,
    ("controllers", "daemonsets/finalizers.apps", "update"): _OWNERS,
    ("controllers", "jobs/finalizers.batch", "update"): _OWNERS,
    ("scheduler", "nodes/node_cpu_usage_avg.custom.metrics.k8s.io", "get"): "plugin usage with a metrics adapter",
    ("scheduler", "nodes/node_memory_usage_avg.custom.metrics.k8s.io", "get"): "plugin usage with a metrics adapter",
    ("controllers", "daemonsets.apps", "get"): _BARE_PODS,
    ("controllers", "replicasets.apps", "get"): _BARE_PODS,
    ("controllers", "statefulsets.apps", "get"): _BARE_PODS,
    ("controllers", "jobs.batch", "get"): _BARE_PODS,
    ("scheduler", "persistentvolumeclaims", "patch"): _VOLUMES,
    ("scheduler", "persistentvolumes", "patch"): _VOLUMES,
    ("scheduler", "resourceclaims.resource.k8s.io", "get"): _DEVICES,
    ("scheduler", "resourceclaims.resource.k8s.io", "update"): _DEVICES,
    ("scheduler", "resourceclaims/status.resource.k8s.io", "update"): _DEVICES,
    (
        "controllers",
        "hypernodes.topology.volcano.sh",
        "delete",
    ): "discovery: a rack that no node is labelled with any more",
    ("controllers", "events", "patch"): "only when the same event repeats",
    ("scheduler", "events", "patch"): "only when the same event repeats",
    ("admission", "secrets", "update"): "renewal of certificates",
    ("controllers", "secrets", "update"): _LEFT_BEHIND,
    ("controllers", "services", "update"): _LEFT_BEHIND,
    ("controllers", "services", "get"): _LEFT_BEHIND,
    ("controllers", "networkpolicies.networking.k8s.io", "update"): _LEFT_BEHIND,
    ("controllers", "networkpolicies.networking.k8s.io", "get"): _LEFT_BEHIND,
    ("controllers", "configmaps", "get"): _LEFT_BEHIND,
    ("controllers", "secrets", "get"): _LEFT_BEHIND,
    ("controllers", "persistentvolumeclaims", "get"): _LEFT_BEHIND,
    ("controllers", "podgroups.scheduling.volcano.sh", "get"): _LEFT_BEHIND,
    ("controllers", "pods", "get"): "only when the cache is behind, or a bind had no answer",
    ("scheduler", "pods", "get"): "only when the cache is behind, or a bind had no answer",
    ("scheduler", "queues.scheduling.volcano.sh", "create"): _FIRST_QUEUES,
}


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong with the roles."""

    forbidden: tuple[str, ...]
    unused: tuple[Permission, ...]

    @property
    def lines(self) -> list[str]:
        """One line a fault."""
        return [
            *(f"forbidden: {line}" for line in self.forbidden),
            *(f"granted and never used: {permission}" for permission in self.unused),
        ]


def check(log: Iterable[str], objects: Iterable[JsonObject], namespace: str, reasons: Reasons) -> Findings:
    """Compare an audit log (JSON lines) with the roles among the chart's ``objects``."""
    used: set[Permission] = set()
    forbidden: dict[str, None] = {}
    allowed = granted(objects, namespace)
    for event in _events(log, namespace):
        permission = _permission(event)
        if event.get("responseStatus", {}).get("code") == 403 and _is_authorization(event):
            # An API server that has just started refuses everybody until it has read the roles.
            if permission not in allowed:
                forbidden[str(permission)] = None
        elif permission is not None:
            used.add(permission)
    unused = sorted(item for item in allowed - used if not _is_explained(item, reasons))
    return Findings(tuple(forbidden), tuple(unused))


def granted(objects: Iterable[JsonObject], namespace: str) -> set[Permission]:
    """Every verb that the roles give to ServiceAccounts of ``namespace``, resource names left aside."""
    listed = list(objects)
    roles = {(item["kind"], item["metadata"]["name"]): item for item in listed if item["kind"].endswith("Role")}
    return {
        Permission(subject["name"], group, resource, verb)
        for binding in listed
        if binding["kind"].endswith("RoleBinding")
        for subject in binding["subjects"]
        if subject["kind"] == "ServiceAccount" and subject["namespace"] == namespace
        for rule in roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _events(log: Iterable[str], namespace: str) -> Iterator[JsonObject]:
    for line in log:
        event = json.loads(line)
        if event.get("user", {}).get("username", "").startswith(f"{PREFIX}{namespace}:"):
            yield event


def _permission(event: JsonObject) -> Permission | None:
    """What a request needed; None for one that is about no resource (``/version``)."""
    reference = event.get("objectRef")
    if not reference or not reference.get("resource"):
        return None
    resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
    account = event["user"]["username"].rpartition(":")[2]
    return Permission(account, reference.get("apiGroup", ""), resource, event["verb"])


def _is_authorization(event: JsonObject) -> bool:
    """Whether roles said no; admission (a quota, a namespace that ends) answers 403 too."""
    return bool(event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid")


def _is_explained(permission: Permission, reasons: Reasons) -> bool:
    resource = permission.resource + (f".{permission.group}" if permission.group else "")
    return (permission.account.rpartition("-")[2], resource, permission.verb) in reasons
