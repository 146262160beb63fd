"""Objects and registries that many tests start from."""

from __future__ import annotations

from typing import Any

from stromboli.api import kinds
from stromboli.api.kinds import Kind
from stromboli.localcluster.assembling import new_registry
from stromboli.localcluster.registry import Registry

WIDGETS = Kind("example.com", "v1", "widgets", "Widget")

WIDGET_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
                "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
                "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "when": {"type": "string", "format": "date-time"},
                "note": {"type": "string", "nullable": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "replicas": {"type": "integer"},
                "parts": {
                    "type": "array",
                    "maxItems": 3,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "count": {"type": "integer", "default": 1},
                        },
                    },
                },
            },
            "x-kubernetes-validations": [
                {"rule": "!has(self.name) || self.name != 'bad'", "message": "name must not be bad"},
                {"rule": "self.size >= oldSelf.size", "message": "size must not shrink"},
            ],
        },
        "status": {"type": "object", "properties": {"ready": {"type": "integer"}, "replicas": {"type": "integer"}}},
    },
}


def widget_definition(**version: Any) -> dict[str, Any]:
    """A definition of widgets; keywords replace parts of its one version."""
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": WIDGET_SCHEMA},
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                    },
                    "selectableFields": [{"jsonPath": ".spec.color"}],
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                        {"name": "Parts", "type": "string", "jsonPath": ".spec.parts[*].name", "priority": 1},
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                    **version,
                }
            ],
        },
    }


def widget(called: str = "w", /, **spec: Any) -> dict[str, Any]:
    """A widget in the namespace ``default``."""
    return {"metadata": {"name": called, "namespace": "default"}, "spec": {"size": 1, **spec}}


async def registry_with_widgets() -> Registry:
    """A registry that serves widgets."""
    registry = new_registry()
    await registry.create(kinds.CUSTOM_RESOURCE_DEFINITIONS, widget_definition())
    return registry


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    """A pod with one container in the namespace ``default``."""
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "busybox:1"}], **spec},
    }


def deployment(name: str = "d", **spec: Any) -> dict[str, Any]:
    """A deployment in the namespace ``default``."""
    template = {"metadata": {"labels": {"app": name}}, "spec": pod()["spec"]}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }
