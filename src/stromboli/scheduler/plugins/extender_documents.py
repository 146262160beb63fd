"""What an extender is told about tasks, jobs, queues and nodes. Fields are only ever added.

Amounts are in internal units: cpu in milli, memory in bytes, pods in pods, every other resource in milli.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Columns, Floats
    from stromboli.scheduler.core.records import Job, Node, Queue, Task
    from stromboli.scheduler.core.view import View

Document: TypeAlias = dict[str, object]


def of_task(task: Task, columns: Columns) -> Document:
    """A pod."""
    return {
        "uid": task.uid,
        "namespace": task.namespace,
        "name": task.name,
        "job": task.job_id,
        "role": task.role,
        "status": task.status.word,
        "node": task.node_name,
        "priority": task.priority,
        "preemptable": task.preemptable,
        "request": columns.amounts(task.request),
        "labels": dict(task.labels),
        "annotations": dict(task.annotations),
    }


def of_job(job: Job, columns: Columns) -> Document:
    """A PodGroup with its pods."""
    return {
        "uid": job.uid,
        "namespace": job.namespace,
        "name": job.name,
        "queue": job.queue_name,
        "priority": job.priority,
        "phase": job.phase.word,
        "minAvailable": job.min_member,
        "minResources": _amounts(job.min_resources, columns),
        "allocated": columns.amounts(job.allocated),
        "annotations": dict(job.annotations),
        "tasks": [of_task(task, columns) for task in job.tasks.values()],
    }


def of_queue(queue: Queue, columns: Columns) -> Document:
    """A queue."""
    spec = queue.resource.spec
    return {
        "name": queue.name,
        "state": queue.resource.status.state,
        "weight": spec.weight,
        "priority": spec.priority,
        "parent": spec.parent,
        "capability": dict(spec.capability),
        "deserved": dict(spec.deserved),
        "allocated": columns.amounts(queue.allocated),
    }


def of_node(node: Node, view: View) -> Document:
    """A node as it is now in the cycle."""
    layers = {name: getattr(view.nodes, name)[node.row] for name in ("allocatable", "idle", "used", "releasing")}
    return {
        "name": node.name,
        "labels": dict(node.labels),
        **{name: view.columns.amounts(amounts) for name, amounts in layers.items()},
        "tasks": sorted(node.tasks),
    }


def of_session(view: View) -> Document:
    """Everything, as a cycle opens."""
    nodes = [node for node in view.node_list if node is not None]
    return {
        "Jobs": {job.id: of_job(job, view.columns) for job in view.jobs.values()},
        "Nodes": {node.name: of_node(node, view) for node in nodes},
        "Queues": {queue.name: of_queue(queue, view.columns) for queue in view.queues.values()},
        "NamespaceInfo": {},
        "RevocableNodes": {},
        "NodeList": None,
    }


def _amounts(amount: Floats | None, columns: Columns) -> dict[str, float] | None:
    return None if amount is None else columns.amounts(amount)
