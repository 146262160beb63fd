"""Builders of flows, jobs and views for the tests of this controller."""

from __future__ import annotations

from typing import Any

from stromboli.api import kinds
from stromboli.api.batch import Job
from stromboli.api.flow import JobFlow
from stromboli.controllers.jobflow.view import View
from stromboli.kube.json import JsonObject

CREATED = "2026-06-24T09:00:00Z"


def step(name: str, *targets: str, probe: JsonObject | None = None, patch: JsonObject | None = None) -> JsonObject:
    """A step; with targets or a probe it depends on them."""
    found: JsonObject = {"name": name}
    if targets or probe:
        found["dependsOn"] = {"targets": list(targets), **({"probe": probe} if probe else {})}
    if patch:
        found["patch"] = {"jobSpec": patch}
    return found


def flow(*steps: JsonObject, name: str = "f", status: JsonObject | None = None, **spec: Any) -> JsonObject:
    """A flow as stored."""
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": CREATED},
        "spec": {"flows": list(steps), **spec},
        "status": status or {},
    }


def template(name: str, **spec: Any) -> JsonObject:
    """A JobTemplate as stored."""
    tasks = [{"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}]
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"not": "copied"}},
        "spec": {"minAvailable": 1, "queue": "q1", "maxRetry": 5, "tasks": tasks, **spec},
    }


def job(name: str, phase: str = "", *, owner: str = "f", spec: JsonObject | None = None, **status: Any) -> JsonObject:
    """A job of a flow as stored."""
    reference = {
        "apiVersion": kinds.JOB_FLOWS.api_version,
        "kind": "JobFlow",
        "name": owner,
        "uid": f"uid-{owner}",
        "controller": True,
    }
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": CREATED,
            "ownerReferences": [reference] if owner else [],
        },
        "spec": spec or template("any")["spec"],
        "status": {"state": {"phase": phase}, **status},
    }


def view(of: JsonObject, *jobs: JsonObject, strangers: tuple[str, ...] = ()) -> View:
    """What a pass sees; there is a template for every step."""
    found = JobFlow.from_wire(of)
    return View(
        found,
        {one["metadata"]["name"]: Job.from_wire(one) for one in jobs},
        {one.name: template(one.name) for one in found.spec.flows},
        frozenset(strangers),
    )
