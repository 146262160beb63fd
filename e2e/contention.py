"""Jobs that fight for a full cluster: five nodes of 8 cpu, two pods of 4 cpu a node."""

from __future__ import annotations

from typing import Any

from e2e.cluster import Cluster, Json, eventually, vcjob

EVERYTHING = 10
"""Pods that fill the cluster."""


def heavy(name: str, replicas: int, *, min_available: int = 1, cpu: str = "4", **more: Any) -> Json:
    """A job of pods that take half a node each and run for long; elastic unless ``min_available`` says otherwise."""
    return vcjob(name, replicas=replicas, min_available=min_available, cpu=cpu, command="sleep 600", **more)


async def refused_a_node(cluster: Cluster, job: str) -> None:
    """Wait until the scheduler has looked for a node for a pod of the job in vain, and has said so in the pod."""
    await eventually(
        lambda: cluster.pods(job),
        lambda pods: any(_is_refused(pod) for pod in pods),
        what=f"a pod of {job} that no node takes",
    )


def _is_refused(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any((one["type"], one["status"]) == ("PodScheduled", "False") for one in conditions)
