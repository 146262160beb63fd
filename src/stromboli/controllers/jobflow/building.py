"""The job of a step. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stromboli.api import kinds, names
from stromboli.api.flow import JobFlow
from stromboli.controllers.jobflow.patching import patched
from stromboli.kube.json import JsonObject


def build(flow: JobFlow, step: str, template: Mapping[str, Any], patch: Mapping[str, Any] | None) -> JsonObject:
    """The job that ``step`` makes of its template, both as stored."""
    origin = {
        names.CREATED_BY_JOB_TEMPLATE: names.qualified(flow.namespace, step),
        names.CREATED_BY_JOB_FLOW: names.qualified(flow.namespace, flow.name),
    }
    return {
        "apiVersion": kinds.JOBS.api_version,
        "kind": kinds.JOBS.kind,
        "metadata": {
            "name": names.job_flow_child_name(flow.name, step),
            "namespace": flow.namespace,
            "labels": origin,
            "annotations": dict(origin),
            "ownerReferences": [flow.owner_reference().to_wire()],
        },
        "spec": patched(template.get("spec") or {}, patch),
    }
