"""The PodGroup and the pods that a vcjob will have, as far as scheduling looks at them (spec 02, 12 to 15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from stromboli.api import core, names
from stromboli.api.requests import pod_request
from stromboli.api.resources import ResourceVector
from stromboli.kube import json
from stromboli.kube.json import JsonObject

GROUP = names.GROUP_NAME
_COPIED = (
    names.PREEMPTABLE,
    names.COOLDOWN_TIME,
    names.REVOCABLE_ZONE,
    names.JDB_MIN_AVAILABLE,
    names.JDB_MAX_UNAVAILABLE,
)


def phase_of(job: JsonObject) -> str:
    """The job's phase, ``Pending`` before the first sync."""
    state = (job.get("status") or {}).get("state") or {}
    return str(state.get("phase") or "Pending")


def word_of_status(job: JsonObject) -> str:
    """``Reason: message`` of the job's state; a message that begins with the reason says it itself."""
    state = (job.get("status") or {}).get("state") or {}
    reason, message = str(state.get("reason") or ""), str(state.get("message") or "").rstrip(".")
    return message if message.startswith(reason) else f"{reason}: {message}".removesuffix(": ")


def group_name(job: JsonObject) -> str:
    """Name of the job's PodGroup."""
    return names.job_pod_group_name(json.key_of(job)[1], json.uid_of(job))


def role_of(pod: core.Pod) -> str:
    """The task of a vcjob that a pod is of."""
    return pod.metadata.annotations.get(names.TASK_SPEC, "")


def dependencies(job: JsonObject) -> dict[str, list[str]]:
    """Tasks that start only when others have, with those others (``dependsOn``)."""
    found = {_role(task): (task.get("dependsOn") or {}).get("name") or [] for task in _tasks(job)}
    return {task: list(others) for task, others in found.items() if others}


def pods(job: JsonObject, priorities: Iterable[core.PriorityClass]) -> Iterator[core.Pod]:
    """All pods of the job, Pending."""
    priorities = list(priorities)
    known = {item.name: item.value for item in priorities}
    default = next((item.value for item in priorities if item.global_default), 0)
    for task in _tasks(job):
        template = task.get("template") or {}
        meta = core.from_builtins(core.ObjectMeta, template.get("metadata") or {})
        spec = core.from_builtins(core.PodSpec, template.get("spec") or {})
        for index in range(task.get("replicas") or 0):
            yield _pod(job, task, core.Pod(metadata=meta, spec=spec), index, known, default)


def _tasks(job: JsonObject) -> list[JsonObject]:
    return (job.get("spec") or {}).get("tasks") or []


def _role(task: JsonObject) -> str:
    return task.get("name") or names.DEFAULT_TASK


def _pod(
    job: JsonObject, task: JsonObject, template: core.Pod, index: int, known: dict[str, int], default: int
) -> core.Pod:
    (namespace, name), role, meta = json.key_of(job), _role(task), json.metadata(job)
    spec, given = job.get("spec") or {}, json.metadata(job).get("annotations") or {}
    notes = {
        names.TASK_INDEX: str(index),
        names.TASK_SPEC: role,
        GROUP: group_name(job),
        names.JOB_NAME: name,
        names.QUEUE_NAME: spec.get("queue") or "default",
        names.TEMPLATE_UID: f"{name}-{role}",
        **{key: given[key] for key in _COPIED if key in given},
    }
    labels = {names.TASK_INDEX: str(index), names.JOB_NAME: name, names.TASK_SPEC: role}
    labels |= {names.JOB_NAMESPACE: namespace, names.QUEUE_NAME: notes[names.QUEUE_NAME]}
    partition = (task.get("partitionPolicy") or {}).get("partitionSize")
    if partition:
        labels[names.PARTITION_ID] = str(index // partition)
    class_name = template.spec.priority_class_name or spec.get("priorityClassName") or ""
    pod_name = names.job_pod_name(name, role, index)
    return core.Pod(
        metadata=core.ObjectMeta(
            name=pod_name,
            namespace=namespace,
            uid=f"{json.uid_of(job)}-{pod_name}",
            creation_timestamp=meta.get("creationTimestamp"),
            labels={**template.metadata.labels, **labels},
            annotations={**template.metadata.annotations, **notes},
        ),
        spec=msgspec.structs.replace(
            template.spec,
            scheduler_name=template.spec.scheduler_name or spec.get("schedulerName") or "volcano",
            priority_class_name=class_name,
            priority=known.get(class_name, default) if class_name else default,
        ),
        status=core.PodStatus(phase="Pending"),
    )


def pod_group(job: JsonObject, priorities: Sequence[core.PriorityClass], now: float) -> core.PodGroup:
    """The job's PodGroup, not admitted yet."""
    spec, (namespace, _), meta = job.get("spec") or {}, json.key_of(job), json.metadata(job)
    minimum = spec.get("minAvailable") or 0
    topology = spec.get("networkTopology")
    values = {item.name: item.value for item in priorities}
    return core.PodGroup(
        metadata=core.ObjectMeta(
            name=group_name(job),
            namespace=namespace,
            uid=f"{json.uid_of(job)}-group",
            creation_timestamp=meta.get("creationTimestamp") or _wire(now),
            labels=dict(meta.get("labels") or {}),
            annotations=dict(meta.get("annotations") or {}),
        ),
        spec=core.PodGroupSpec(
            min_member=minimum,
            min_task_member={_role(task): _needed(task) for task in _tasks(job)},
            queue=spec.get("queue") or "default",
            priority_class_name=spec.get("priorityClassName") or "",
            min_resources=_resources(_gang(list(pods(job, priorities)), _tasks(job), minimum, values)),
            network_topology=core.from_builtins(core.NetworkTopology, topology) if topology else None,
            sub_group_policy=tuple(_sub_group(task) for task in _tasks(job) if task.get("partitionPolicy")),
        ),
        status=core.PodGroupStatus(phase="Pending"),
    )


def _wire(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _needed(task: JsonObject) -> int:
    policy = task.get("partitionPolicy") or {}
    if task.get("minAvailable") is not None:
        return int(task["minAvailable"])
    if policy.get("minPartitions") and policy.get("partitionSize"):
        return int(policy["minPartitions"] * policy["partitionSize"])
    return task.get("replicas") or 0


def _sub_group(task: JsonObject) -> core.SubGroupPolicy:
    policy = task["partitionPolicy"]
    topology = policy.get("networkTopology")
    return core.SubGroupPolicy(
        name=_role(task),
        network_topology=core.from_builtins(core.NetworkTopology, topology) if topology else None,
        sub_group_size=policy.get("partitionSize"),
        min_sub_groups=policy.get("minPartitions"),
        label_selector=core.LabelSelector(match_labels={names.TASK_SPEC: _role(task)}),
        match_label_keys=(names.PARTITION_ID,),
    )


def _gang(
    everybody: Sequence[core.Pod], tasks: Sequence[JsonObject], minimum: int, priorities: Mapping[str, int]
) -> list[core.Pod]:
    """The first ``minimum`` pods: tasks of higher priority first, each task's own minimum before anybody's rest.

    A task's priority is that of the class its template names; the job's class does not count (spec 02 section 15).
    """
    by_role: dict[str, list[core.Pod]] = {}
    for pod in everybody:
        by_role.setdefault(pod.metadata.annotations[names.TASK_SPEC], []).append(pod)
    classes = {_role(task): _class_of(task) for task in tasks}
    roles = sorted(by_role, key=lambda role: -priorities.get(classes.get(role, ""), 0))
    least = {_role(task): _least(task) for task in tasks}
    if minimum < sum(least.values()):
        return [pod for role in roles for pod in by_role[role]][:minimum]
    first = [pod for role in roles for pod in by_role[role][: least[role]]]
    rest = [pod for role in roles for pod in by_role[role][least[role] :]]
    return [*first, *rest][:minimum]


def _class_of(task: JsonObject) -> str:
    return str(((task.get("template") or {}).get("spec") or {}).get("priorityClassName") or "")


def _least(task: JsonObject) -> int:
    return int(task.get("replicas") or 0) if task.get("minAvailable") is None else int(task["minAvailable"])


def _resources(gang: Sequence[core.Pod]) -> core.ResourceList:
    total = ResourceVector(scalars={})
    for pod in gang:
        total = total + pod_request(pod)
    return dict(total.to_list())
