"""Fluent builders of jobs and pods for the tests of this room."""

from __future__ import annotations

import copy
from typing import Any, Self

from stromboli.api import kinds, names
from stromboli.api.batch import Job
from stromboli.controllers.job.members import Member
from stromboli.kube.json import JsonObject

CREATED = "2026-06-24T09:00:00Z"
UID = "11111111-2222-3333-4444-555555555555"


class JobBuilder:
    """``job("train").task("worker", 2).policy("PodFailed", "RestartJob").model()``."""

    def __init__(self, name: str = "job1", namespace: str = "default") -> None:
        self.wire: JsonObject = {
            "apiVersion": kinds.JOBS.api_version,
            "kind": kinds.JOBS.kind,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": UID,
                "resourceVersion": "1",
                "creationTimestamp": CREATED,
            },
            "spec": {"queue": "default", "maxRetry": 3, "minAvailable": 0, "tasks": []},
            "status": {},
        }

    def task(self, name: str, replicas: int, /, *, requests: dict[str, str] | None = None, **fields: Any) -> Self:
        container: JsonObject = {"name": "main", "image": "busybox"}
        if requests is not None:
            container["resources"] = {"requests": requests}
        template = fields.pop("template", {"spec": {"containers": [container]}})
        self.wire["spec"]["tasks"].append({"name": name, "replicas": replicas, "template": template, **fields})
        self.wire["spec"]["minAvailable"] += fields.get("minAvailable", replicas)
        return self

    def policy(self, event: str | list[str], action: str, /, *, task: str = "", **fields: Any) -> Self:
        entry = {"events" if isinstance(event, list) else "event": event, "action": action, **fields}
        holder = next((one for one in self.wire["spec"]["tasks"] if one["name"] == task), self.wire["spec"])
        holder.setdefault("policies", []).append({key: value for key, value in entry.items() if value})
        return self

    def spec(self, **fields: Any) -> Self:
        self.wire["spec"].update(fields)
        return self

    def meta(self, **fields: Any) -> Self:
        self.wire["metadata"].update(fields)
        return self

    def phase(self, phase: str, /, *, since: str = CREATED, reason: str = "") -> Self:
        state = {"phase": phase, "lastTransitionTime": since, "reason": reason}
        self.wire["status"]["state"] = {key: value for key, value in state.items() if value}
        self.wire["status"].setdefault("minAvailable", self.wire["spec"]["minAvailable"])
        return self

    def status(self, **fields: Any) -> Self:
        self.wire["status"].update(fields)
        return self

    def obj(self) -> JsonObject:
        """A copy as plain data, without what the server sets."""
        wire = copy.deepcopy(self.wire)
        for field in ("uid", "resourceVersion", "creationTimestamp"):
            wire["metadata"].pop(field, None)
        return wire

    def model(self) -> Job:
        """The job as the controller reads it."""
        return Job.from_wire(copy.deepcopy(self.wire))


def job(name: str = "job1", namespace: str = "default") -> JobBuilder:
    """A job of no tasks in queue ``default``, whose ``minAvailable`` grows with its tasks."""
    return JobBuilder(name, namespace)


def member(task: str, index: int, phase: str = "Running", /, *, job: str = "job1", **fields: Any) -> Member:
    """A pod of ``job1``, version 0."""
    name = names.job_pod_name(job, task, index)
    defaults = {"name": name, "uid": f"uid-{name}", "job_name": job, "job_uid": UID, "task": task, "index": index}
    return Member(**{**defaults, "phase": phase, **fields})
