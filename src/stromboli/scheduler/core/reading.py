"""From API objects to the fields of tasks, jobs and nodes (spec 04 sections 7, 9, 10 and 13.1). Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stromboli.api import booleans, core, durations, names
from stromboli.scheduler.core.records import PHASES_BY_WORD, Job, Phase, Task
from stromboli.scheduler.core.statuses import TaskStatus

_INT32 = range(-(2**31), 2**31)
_INTEGER = re.compile(r"[+-]?[0-9]+")


def status_of(pod: core.Pod) -> TaskStatus:
    """The task status a pod shows."""
    phase = pod.status.phase
    if phase in ("Running", "Pending", ""):
        if pod.deleting:
            return TaskStatus.RELEASING
        if phase == "Running":
            return TaskStatus.RUNNING
        return TaskStatus.BOUND if pod.spec.node_name else TaskStatus.PENDING
    return {"Succeeded": TaskStatus.SUCCEEDED, "Failed": TaskStatus.FAILED}.get(phase, TaskStatus.UNKNOWN)


def job_id_of(pod: core.Pod) -> str:
    """``namespace/group``, or empty for a pod that only occupies its node."""
    group = pod.metadata.annotations.get(names.GROUP_NAME, "")
    return f"{pod.namespace}/{group}" if group else ""


def fill_task(task: Task, pod: core.Pod) -> None:
    """Sets everything about a task that is read from its pod, except status, node and shape."""
    annotations, labels = pod.metadata.annotations, pod.metadata.labels
    task.labels, task.annotations = labels, annotations
    task.job_id = job_id_of(pod)
    task.role = annotations.get(names.TASK_SPEC) or labels.get(names.TASK_SPEC, "")
    task.index = index_of(pod.name)
    task.priority = priority_of(pod)
    task.spec_priority = pod.spec.priority or 0
    task.priority_class = pod.spec.priority_class_name
    task.preemption_policy = pod.spec.preemption_policy or ""
    task.preemptable = preemptable(annotations, labels, absent=True)
    task.revocable_zone = revocable_zone(annotations)
    task.created = pod.created
    task.deleting = pod.deleting
    task.nominated_node = pod.status.nominated_node_name
    _fill_gates(task, pod)
    task.scheduled_condition = next(
        ((item.status, item.reason, item.message) for item in pod.status.conditions if item.type == "PodScheduled"),
        None,
    )
    task.scheduled_at = scheduled_at(pod)
    task.host_ports = host_ports(pod)
    task.started = core.timestamp(pod.status.start_time) if pod.status.start_time else float("inf")
    task.preempted = any(
        item.type == "DisruptionTarget" and item.status == "True" and item.reason == "PreemptionByScheduler"
        for item in pod.status.conditions
    )


def scheduled_at(pod: core.Pod) -> float:
    """When the pod was found to have a node; infinite when it has not been."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True" and condition.last_transition_time:
            return core.timestamp(condition.last_transition_time)
    return float("inf")


def _fill_gates(task: Task, pod: core.Pod) -> None:
    gates = pod.spec.scheduling_gates
    task.gated = bool(gates)
    task.queue_gate_only = len(gates) == 1 and gates[0].name == names.QUEUE_ALLOCATION_GATE
    task.gate_opt_in = pod.metadata.annotations.get(names.QUEUE_ALLOCATION_GATE) == "true"


def index_of(name: str) -> int | None:
    """The number after the last ``-`` of a pod name of at least three parts."""
    if name.count("-") < 2:
        return None
    last = name.rpartition("-")[2]
    return int(last) if last.isdecimal() else None


def priority_of(pod: core.Pod) -> int:
    """Task priority: annotation, else ``spec.priority``, else 1."""
    written = pod.metadata.annotations.get(names.TASK_PRIORITY)
    if written is not None and _INTEGER.fullmatch(written) and int(written) in _INT32:
        return int(written)
    return 1 if pod.spec.priority is None else pod.spec.priority


def preemptable(annotations: Mapping[str, str], labels: Mapping[str, str], *, absent: bool) -> bool:
    """The preemptable annotation, then label; unparsable counts as false."""
    written = annotations.get(names.PREEMPTABLE, labels.get(names.PREEMPTABLE))
    return absent if written is None else bool(booleans.parse(written))


def revocable_zone(annotations: Mapping[str, str]) -> str:
    """``*`` or empty."""
    zone = annotations.get(names.REVOCABLE_ZONE)
    if zone is not None:
        return "*" if zone == "*" else ""
    return "*" if booleans.parse(annotations.get(names.PREEMPTABLE, "")) else ""


def host_ports(pod: core.Pod) -> tuple[tuple[str, str, int], ...]:
    """Host ports of containers and sidecars as (IP, protocol, port)."""
    sidecars = (container for container in pod.spec.init_containers if container.restart_policy == "Always")
    return tuple(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in (*pod.spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    )


def fill_job(job: Job, group: core.PodGroup, default_queue: str) -> None:
    """Sets everything about a job that is read from its PodGroup, except resources and sub-jobs."""
    annotations = group.metadata.annotations
    job.pod_group = group
    job.uid = group.uid
    job.created = group.created
    job.labels, job.annotations = group.metadata.labels, annotations
    job.queue_name = group.spec.queue or default_queue
    job.min_member = group.spec.min_member
    job.role_minimums = group.spec.min_task_member
    job.role_total = sum(group.spec.min_task_member.values())
    job.preemptable = preemptable(annotations, job.labels, absent=False)
    job.revocable_zone = revocable_zone(annotations)
    job.sla_waiting_time = sla_waiting_time(annotations)
    job.disruption_budget = disruption_budget(annotations)
    job.topology = group.spec.network_topology
    job.phase = PHASES_BY_WORD.get(group.status.phase, Phase.PENDING)
    job.sub_groups = {f"{job.id}/{policy.name}": policy.min_sub_groups or 0 for policy in group.spec.sub_group_policy}


def sla_waiting_time(annotations: Mapping[str, str]) -> float | None:
    """Seconds, from the first of the two annotations that holds a positive duration."""
    for key in (names.SLA_WAITING_TIME, names.SLA_WAITING_TIME_LEGACY):
        try:
            waiting = durations.seconds(annotations[key])
        except (KeyError, ValueError):
            continue
        if waiting > 0:
            return waiting
    return None


def disruption_budget(annotations: Mapping[str, str]) -> tuple[str, str] | None:
    """One of the two kinds of disruption budget of a job, as text."""
    for kind, key in (("min-available", names.JDB_MIN_AVAILABLE), ("max-unavailable", names.JDB_MAX_UNAVAILABLE)):
        if key in annotations:
            return kind, annotations[key]
    return None


def oversubscription(annotations: Mapping[str, str]) -> dict[str, float]:
    """What colocation adds to a node, in internal units."""
    added: dict[str, float] = {}
    for name, key in (("cpu", names.OVERSUBSCRIPTION_CPU), ("memory", names.OVERSUBSCRIPTION_MEMORY)):
        try:
            added[name] = float(annotations[key])
        except (KeyError, ValueError):
            continue
    return added


def image_sizes(node: core.Node) -> dict[str, int]:
    """Image name to size on a node, every name of an image counted."""
    return {name: image.size_bytes for image in node.status.images for name in image.names}
