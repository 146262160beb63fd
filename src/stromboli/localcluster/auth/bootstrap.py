"""The ClusterRoles and bindings that exist from the start, a working subset of kube-apiserver's."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.localcluster.storage import Object

_GROUP = "rbac.authorization.k8s.io"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_WORKLOADS = [
    ("", ["configmaps", "endpoints", "events", "persistentvolumeclaims", "pods", "replicationcontrollers",
          "serviceaccounts", "services", "resourcequotas", "limitranges"]),
    ("apps", ["controllerrevisions", "daemonsets", "deployments", "deployments/scale", "replicasets",
              "replicasets/scale", "statefulsets", "statefulsets/scale"]),
    ("batch", ["cronjobs", "jobs"]),
    ("networking.k8s.io", ["ingresses", "networkpolicies"]),
    ("policy", ["poddisruptionbudgets"]),
]  # fmt: skip
_DISCOVERY_PATHS = ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz",
                    "/version", "/version/"]  # fmt: skip
_INFO_PATHS = ["/healthz", "/livez", "/readyz", "/version", "/version/"]


def cluster_roles() -> list[Object]:
    """All ClusterRoles to have at start."""
    view = [_rule([group], [*resources, *_statuses(resources)], _READ) for group, resources in _WORKLOADS]
    view += [_rule([""], ["namespaces", "pods/log"], _READ)]
    edit = [_rule([group], resources, _WRITE) for group, resources in _WORKLOADS]
    edit += [
        _rule([""], ["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets"], [*_READ, *_WRITE]),
        _rule([""], ["pods/eviction", "serviceaccounts/token"], ["create"]),
        _rule([""], ["serviceaccounts"], ["impersonate"]),
    ]
    admin = [
        _rule([_GROUP], ["rolebindings", "roles"], [*_READ, *_WRITE]),
        _rule(["authorization.k8s.io"], ["localsubjectaccessreviews"], ["create"]),
    ]
    return [
        _role("cluster-admin", [_rule(["*"], ["*"], ["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}]),
        _role("system:discovery", [{"nonResourceURLs": _DISCOVERY_PATHS, "verbs": ["get"]}]),
        _role("system:public-info-viewer", [{"nonResourceURLs": _INFO_PATHS, "verbs": ["get"]}]),
        _role(
            "system:basic-user",
            [
                _rule(["authorization.k8s.io"], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], ["create"]),
                _rule(["authentication.k8s.io"], ["selfsubjectreviews"], ["create"]),
            ],
        ),
        _role(
            "system:auth-delegator",
            [
                _rule(["authentication.k8s.io"], ["tokenreviews"], ["create"]),
                _rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
            ],
        ),
        _role("system:aggregate-to-view", view, aggregate_to="view"),
        _role("system:aggregate-to-edit", edit, aggregate_to="edit"),
        _role("system:aggregate-to-admin", admin, aggregate_to="admin"),
        _aggregate("view", ["view"]),
        _aggregate("edit", ["edit", "view"]),
        _aggregate("admin", ["admin", "edit", "view"]),
    ]


def cluster_role_bindings() -> list[Object]:
    """All ClusterRoleBindings to have at start."""
    return [
        _binding("cluster-admin", ["system:masters"]),
        _binding("system:discovery", ["system:authenticated"]),
        _binding("system:basic-user", ["system:authenticated"]),
        _binding("system:public-info-viewer", ["system:authenticated", "system:unauthenticated"]),
    ]


def _rule(groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str]) -> Object:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


def _statuses(resources: Sequence[str]) -> list[str]:
    return [f"{resource}/status" for resource in resources if "/" not in resource]


def _role(name: str, rules: Sequence[Object], *, aggregate_to: str = "") -> Object:
    labels = dict(_LABELS)
    if aggregate_to:
        labels[f"{_GROUP}/aggregate-to-{aggregate_to}"] = "true"
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": list(rules)}


def _aggregate(name: str, sources: Sequence[str]) -> Object:
    selectors = [{"matchLabels": {f"{_GROUP}/aggregate-to-{source}": "true"}} for source in sources]
    return {**_role(name, []), "aggregationRule": {"clusterRoleSelectors": selectors}}


def _binding(role: str, groups: Sequence[str]) -> Object:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role, "labels": dict(_LABELS)},
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _GROUP, "kind": "Group", "name": group} for group in groups],
    }
