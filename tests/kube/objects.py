"""The few objects that this room's tests need."""

from __future__ import annotations

from stromboli.kube.json import JsonObject


def pod(name: str, namespace: str = "default", **labels: str) -> JsonObject:
    """A pod with a container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }


def config_map(name: str, namespace: str = "default", **data: str) -> JsonObject:
    """A config map."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }
