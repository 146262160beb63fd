"""The PodGroup of a job: how it is built, how it is kept up to date, and how it opens the gate for pods.

Spec 02 sections 11.4, 14 and 15. The scheduler owns the status; labels, annotations, queue and topology are set at
creation and never again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from stromboli.api import complaints, kinds, names, quantities
from stromboli.api.batch import Job, TaskSpec
from stromboli.api.core import (
    LabelSelector,
    NetworkTopology,
    PodGroup,
    PodGroupCondition,
    PodSpec,
    ResourceList,
    SubGroupPolicy,
    from_builtins,
    to_builtins,
)
from stromboli.api.phases import PodGroupConditionType
from stromboli.api.topologies import NetworkTopologySpec
from stromboli.controllers import usage
from stromboli.controllers.job import pods
from stromboli.kube import json
from stromboli.kube.json import JsonObject

_DENIALS: Mapping[str, str] = {
    PodGroupConditionType.ADMITTED: "not admitted",
    PodGroupConditionType.FITS: "does not fit",
}
"""How it is put that a condition is false which is bad news then."""
MOST_ADDED_UP = 1024
"""Sums of resources that are kept, some hundred bytes each."""
NOT_ADMITTED = frozenset({"", "Pending"})
PLACED = frozenset({"Running", "Completed"})


def admitted(group: PodGroup | None) -> bool:
    """Whether the scheduler has let the job in, so that its pods may exist."""
    return group is not None and not group.deleting and group.status.phase not in NOT_ADMITTED


def build(job: Job, priorities: Mapping[str, int]) -> JsonObject:
    """The PodGroup to create. ``priorities`` are the values of the PriorityClasses by name."""
    spec: JsonObject = {
        "minMember": job.spec.min_available,
        "minTaskMember": min_task_member(job),
        "queue": job.spec.queue,
        "minResources": min_resources(job, priorities),
    }
    if job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    if job.spec.network_topology is not None:
        spec["networkTopology"] = to_builtins(_job_topology(job.spec.network_topology))
    policies = sub_group_policies(job)
    if policies:
        spec["subGroupPolicy"] = [to_builtins(policy) for policy in policies]
    return {
        "apiVersion": kinds.POD_GROUPS.api_version,
        "kind": kinds.POD_GROUPS.kind,
        "metadata": {
            "name": names.job_pod_group_name(job.name, job.uid),
            "namespace": job.namespace,
            "labels": dict(job.metadata.labels),
            "annotations": dict(job.metadata.annotations),
            "ownerReferences": [pods.owner_reference(job)],
        },
        "spec": spec,
    }


def changes(job: Job, group: PodGroup, priorities: Mapping[str, int]) -> JsonObject:
    """A merge patch that brings ``group`` up to date, or ``{}`` (spec 02 section 14.2)."""
    spec: JsonObject = {}
    if group.spec.priority_class_name != job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name or None
    wanted = min_resources(job, priorities)
    present = group.spec.min_resources
    if group.spec.min_member != job.spec.min_available or present is None or not quantities.equal(present, wanted):
        # A merge patch keeps what it does not name: resources that are no longer asked for must be taken out.
        spec["minMember"] = job.spec.min_available
        spec["minResources"] = {**dict.fromkeys(present or {}), **wanted}
    members = {task: n for task, n in min_task_member(job).items() if group.spec.min_task_member.get(task) != n}
    if members:
        spec["minTaskMember"] = members
    policies = sub_group_policies(job)
    if _policies_differ(policies, group.spec.sub_group_policy, {pods.task_name(task) for task in job.spec.tasks}):
        spec["subGroupPolicy"] = [to_builtins(policy) for policy in policies]
    return {"spec": spec} if spec else {}


def _policies_differ(wanted: Sequence[SubGroupPolicy], present: Sequence[SubGroupPolicy], tasks: set[str]) -> bool:
    """Entries of names that are no task of the job are somebody else's and do not count."""
    found = {policy.name: policy for policy in present}
    names_wanted = {policy.name for policy in wanted}
    stale = any(name in tasks and name not in names_wanted for name in found)
    return stale or any(found.get(policy.name) != policy for policy in wanted)


def min_task_member(job: Job) -> dict[str, int]:
    """Pods that each task needs for the gang."""
    return {pods.task_name(task): _required(task) for task in job.spec.tasks}


def _required(task: TaskSpec) -> int:
    if task.min_available is not None:
        return task.min_available
    policy = task.partition_policy
    if policy is not None and policy.min_partitions and policy.partition_size:
        return policy.min_partitions * policy.partition_size
    return task.replicas


def sub_group_policies(job: Job) -> list[SubGroupPolicy]:
    """One sub-gang policy for each partitioned task."""
    return [_sub_group_policy(task) for task in job.spec.tasks if task.partition_policy is not None]


def _sub_group_policy(task: TaskSpec) -> SubGroupPolicy:
    policy = task.partition_policy
    assert policy is not None
    name, topology = pods.task_name(task), policy.network_topology
    return SubGroupPolicy(
        name=name,
        network_topology=_topology(topology) if topology is not None else None,
        sub_group_size=policy.partition_size,
        min_sub_groups=policy.min_partitions,
        label_selector=LabelSelector(match_labels={names.TASK_SPEC: name}),
        match_label_keys=(names.PARTITION_ID,),
    )


def _topology(topology: NetworkTopologySpec) -> NetworkTopology:
    return NetworkTopology(
        mode=str(topology.mode or ""),
        highest_tier_allowed=topology.highest_tier_allowed,
        highest_tier_name=topology.highest_tier_name or "",
    )


def _job_topology(topology: NetworkTopologySpec) -> NetworkTopology:
    """As :func:`_topology`, but a numeric tier silences a tier name."""
    copied = _topology(topology)
    if copied.highest_tier_allowed is None:
        return copied
    return NetworkTopology(mode=copied.mode, highest_tier_allowed=copied.highest_tier_allowed)


def min_resources(job: Job, priorities: Mapping[str, int]) -> ResourceList:
    """Usage of the gang's first ``minAvailable`` pods, tasks of higher priority first (spec 02 section 15).

    Many jobs ask for the same, and each is looked at often: what it comes to is worked out once for what is asked for.
    """
    tasks = sorted(job.spec.tasks, key=lambda task: -_priority(task, priorities))
    taken = _taken(tasks, job.spec.min_available)
    counted = [[number, _asked_for(task)] for number, task in zip(taken, tasks, strict=True) if number]
    return dict(_added_up(json.encode({"counted": counted})))


def _asked_for(task: TaskSpec) -> JsonObject:
    """What of a pod's spec makes up its usage; the rest of a template is most of it."""
    spec = task.template.spec
    resources = spec.resources.to_wire() if spec.resources is not None else None
    return {
        "containers": [{"resources": one.resources.to_wire()} for one in spec.containers],
        "initContainers": [
            {"resources": one.resources.to_wire(), "restartPolicy": one.restart_policy or ""}
            for one in spec.init_containers
        ],
        "overhead": spec.overhead,
        **({"resources": resources} if resources else {}),
    }


@lru_cache(maxsize=MOST_ADDED_UP)
def _added_up(counted: bytes) -> ResourceList:
    """The sum over numbers of pods and what each asks for; not to be changed."""
    found = json.decode_object(counted)["counted"]
    parts = [(number, usage.of_pod(from_builtins(PodSpec, spec))) for number, spec in found]
    return usage.to_wire(usage.total(parts))


def _priority(task: TaskSpec, priorities: Mapping[str, int]) -> int:
    return priorities.get(task.template.spec.priority_class_name or "", 0)


def _taken(tasks: Sequence[TaskSpec], wanted: int) -> list[int]:
    """Pods each task contributes to a gang of ``wanted``: own minimums first, if the gang covers them all."""
    minimums = [task.replicas if task.min_available is None else task.min_available for task in tasks]
    if wanted < sum(minimums):
        return _fill([task.replicas for task in tasks], wanted)
    first = _fill(minimums, wanted)
    rest = [task.replicas - minimum for task, minimum in zip(tasks, minimums, strict=True)]
    second = _fill(rest, wanted - sum(first))
    return [one + other for one, other in zip(first, second, strict=True)]


def _fill(limits: Sequence[int], wanted: int) -> list[int]:
    """Take up to each limit in order until ``wanted`` is reached."""
    taken = []
    for limit in limits:
        part = max(0, min(limit, wanted))
        taken.append(part)
        wanted -= part
    return taken


def complaint(group: PodGroup) -> tuple[str, str] | None:
    """What to tell the job's owner about the group: ``(what, why)``, or None when all is scheduled, or it goes."""
    told = complaints.complaint(group.status.conditions)
    if group.deleting or (told is not None and _is_overtaken(told, group)):
        return None
    return (_DENIALS.get(told.type, told.type.lower()), told.message) if told is not None else None


def _is_overtaken(told: PodGroupCondition, group: PodGroup) -> bool:
    """Whether the gang was placed in the second in which it was said to wait: the phase tells which came last."""
    return (
        told.type == PodGroupConditionType.UNSCHEDULABLE
        and group.status.phase in PLACED
        and any(
            one.type == PodGroupConditionType.SCHEDULED
            and one.status == "True"
            and one.last_transition_time == told.last_transition_time
            for one in group.status.conditions
        )
    )
