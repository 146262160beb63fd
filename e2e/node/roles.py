"""Jobs of several tasks on real nodes, and what their containers say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.cluster import Json
from e2e.node.kubectl import Kubectl
from e2e.node.workloads import Workloads

PATIENCE = 120.0
"""Seconds until pods have started, found each other and ended, on a machine that does other things as well."""
LONG = "exec sleep 3600"


@dataclass(frozen=True, slots=True)
class Role:
    """A task: what its container runs, in how many pods, and policies of its own."""

    command: str
    replicas: int = 1
    policies: Sequence[Json] = ()


def team(
    workloads: Workloads, name: str, roles: Mapping[str, Role], plugins: Mapping[str, Sequence[str]], **spec: Any
) -> Json:
    """A job with a task for each role, all or nothing; tasks and their containers have the roles' names."""
    job = workloads.job(name, min_available=sum(role.replicas for role in roles.values()), plugins=plugins, **spec)
    job["spec"]["tasks"] = [_task(workloads, word, role) for word, role in roles.items()]
    return job


def _task(workloads: Workloads, name: str, role: Role) -> Json:
    one = workloads.job(name, replicas=role.replicas, command=role.command, task_policies=list(role.policies))
    (task,) = one["spec"]["tasks"]
    task["name"] = task["template"]["spec"]["containers"][0]["name"] = name
    return dict(task)


def share(job: Json, directory: Path) -> Json:
    """The job with a directory of the test's own at ``/notes`` in every container: both see the same files."""
    for task in job["spec"]["tasks"]:
        spec = task["template"]["spec"]
        spec["volumes"] = [{"name": "notes", "hostPath": {"path": str(directory), "type": "Directory"}}]
        for container in spec["containers"]:
            container["volumeMounts"] = [{"name": "notes", "mountPath": "/notes"}]
    return job


async def lines(kubectl: Kubectl, pod: str, *arguments: str) -> list[str]:
    """What a pod's container has said."""
    return (await kubectl("logs", pod, *arguments)).splitlines()
