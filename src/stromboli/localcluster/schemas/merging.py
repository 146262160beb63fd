"""How lists and maps of built-in types merge: the knowledge that the generated client models leave out.

Source: the ``x-kubernetes-*`` and patch extensions in the published Kubernetes OpenAPI documents. What is missing here
is replaced as a whole, which is also Kubernetes' default.
"""

from __future__ import annotations

from typing import NamedTuple


class Merging(NamedTuple):
    """``keys``: list-map keys of server-side apply (empty: a set); ``strategic``: merge key of a strategic patch."""

    keys: tuple[str, ...] = ()
    strategic: str = ""
    strategy: str = "merge"


_BY_NAME = Merging(("name",), "name")
_BY_NAME_WHOLE = Merging(("name",), "name", "merge,retainKeys")
_BY_TYPE = Merging(("type",), "type")

LISTS: dict[tuple[str, str], Merging] = {
    ("ObjectMeta", "finalizers"): Merging(),
    ("ObjectMeta", "ownerReferences"): Merging(("uid",), "uid"),
    ("PodSpec", "containers"): _BY_NAME,
    ("PodSpec", "initContainers"): _BY_NAME,
    ("PodSpec", "ephemeralContainers"): _BY_NAME,
    ("PodSpec", "volumes"): _BY_NAME_WHOLE,
    ("PodSpec", "resourceClaims"): _BY_NAME_WHOLE,
    ("PodSpec", "imagePullSecrets"): _BY_NAME,
    ("PodSpec", "schedulingGates"): _BY_NAME,
    ("PodSpec", "hostAliases"): Merging(("ip",), "ip"),
    ("PodSpec", "topologySpreadConstraints"): Merging(("topologyKey", "whenUnsatisfiable"), "topologyKey"),
    ("PodStatus", "podIPs"): Merging(("ip",), "ip"),
    ("PodStatus", "resourceClaimStatuses"): _BY_NAME_WHOLE,
    ("Container", "ports"): Merging(("containerPort", "protocol"), "containerPort"),
    ("Container", "env"): _BY_NAME,
    ("Container", "volumeMounts"): Merging(("mountPath",), "mountPath"),
    ("Container", "volumeDevices"): Merging(("devicePath",), "devicePath"),
    ("EphemeralContainer", "ports"): Merging(("containerPort", "protocol"), "containerPort"),
    ("EphemeralContainer", "env"): _BY_NAME,
    ("EphemeralContainer", "volumeMounts"): Merging(("mountPath",), "mountPath"),
    ("ResourceRequirements", "claims"): Merging(("name",)),
    ("ServiceSpec", "ports"): Merging(("port", "protocol"), "port"),
    ("ServiceAccount", "secrets"): _BY_NAME,
    ("NodeSpec", "podCIDRs"): Merging((), "", "merge"),
    ("NodeStatus", "addresses"): _BY_TYPE,
    ("MutatingWebhookConfiguration", "webhooks"): _BY_NAME,
    ("ValidatingWebhookConfiguration", "webhooks"): _BY_NAME,
    ("MutatingWebhook", "matchConditions"): _BY_NAME,
    ("ValidatingWebhook", "matchConditions"): _BY_NAME,
}
"""(type, JSON field) of every list that is merged by key or as a set."""

RETAINED_STRUCTS = {("DeploymentSpec", "strategy"), ("DaemonSetSpec", "updateStrategy")}
"""Structs whose strategic patch says which keys stay (``retainKeys``)."""

ATOMIC_TYPES = {
    "LabelSelector", "LocalObjectReference", "ObjectReference", "ObjectFieldSelector", "ResourceFieldSelector",
    "SecretKeySelector", "ConfigMapKeySelector", "SecretReference", "TypedLocalObjectReference", "NodeSelectorTerm",
    "NodeSelector", "TopologySelectorTerm", "ScopeSelector", "OwnerReference", "RoleRef", "Subject",
}  # fmt: skip
"""Types that one manager owns as a whole."""

ATOMIC_MAPS = {("PodSpec", "nodeSelector"), ("ServiceSpec", "selector"), ("ReplicationControllerSpec", "selector")}
"""Maps that one manager owns as a whole."""


def merging_of(type_name: str, field: str) -> Merging | None:
    """How the list ``field`` of a type merges; None when it is replaced."""
    if field == "conditions" and type_name.endswith("Status"):
        return _BY_TYPE
    return LISTS.get((type_name, field))
