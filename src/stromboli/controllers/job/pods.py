"""Building the pods of a job (spec 02 section 12, spec 01 section 24.1).

A pod starts as its task's template. What the job adds wins over what the template says, except for the scheduler and
the priority class, which the template may choose. Pods are plain data here because templates must reach the API
server untouched, fields unknown to us included.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, MutableMapping
from typing import Any

from stromboli.api import kinds, names
from stromboli.api.batch import Job, TaskSpec
from stromboli.kube import json
from stromboli.kube.json import JsonObject

_FROM_JOB_ANNOTATIONS = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_FROM_JOB_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def task_name(task: TaskSpec) -> str:
    """The name a task goes by on its pods."""
    return task.name or names.DEFAULT_TASK


def owner_reference(job: Job) -> JsonObject:
    """The reference by which everything made for a job belongs to it."""
    return {
        "apiVersion": kinds.JOBS.api_version,
        "kind": kinds.JOBS.kind,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def partition_id(task: TaskSpec, index: int) -> str | None:
    """Partition of a replica, or None when the task is not partitioned. Division truncates toward zero."""
    if task.partition_policy is None:
        return None
    size = task.partition_policy.partition_size
    return str(int(index / size)) if size > 0 else "0"


class PodMaker:
    """Makes the pods of one task, before job plugins have had their say.

    What all replicas share is put together once; a pod is that plus what depends on its index. Pods share nothing that
    a plugin could change by changing one of them.
    """

    def __init__(self, job: Job, task: TaskSpec, *, forwarded: bool = False) -> None:
        self._job, self._task, self._name = job, task, task_name(task)
        template = template_of(task)
        self._labels = {**_section(template, "labels"), **_labels(job, task, forwarded)}
        self._annotations = {**_section(template, "annotations"), **_annotations(job, task, forwarded)}
        spec = template.get("spec") or {}
        _inherit(spec, job)
        self._spec = json.encode(spec)

    def make(self, index: int) -> JsonObject:
        """The pod of replica ``index``."""
        name = names.job_pod_name(self._job.name, self._name, index)
        spec = json.decode_object(self._spec)  # by far the cheapest deep copy
        _mount_volumes(spec, self._job, name)
        return {
            "apiVersion": kinds.PODS.api_version,
            "kind": kinds.PODS.kind,
            "metadata": {
                "name": name,
                "namespace": self._job.namespace,
                "ownerReferences": [owner_reference(self._job)],
                "labels": {**self._labels, **self._labels_of(index)},
                "annotations": {**self._annotations, names.TASK_INDEX: str(index)},
            },
            "spec": spec,
        }

    def _labels_of(self, index: int) -> dict[str, str]:
        partition = partition_id(self._task, index)
        own = {names.TASK_INDEX: str(index)}
        return own if partition is None else {**own, names.PARTITION_ID: partition}


def template_of(task: TaskSpec) -> JsonObject:
    """A copy of the task's template as plain data, free to be changed."""
    return task.template.to_wire()


def _section(template: Mapping[str, Any], field: str) -> dict[str, str]:
    return dict((template.get("metadata") or {}).get(field) or {})


def _annotations(job: Job, task: TaskSpec, forwarded: bool) -> dict[str, str]:
    name, given = job.name, job.metadata.annotations
    notes = {
        names.TASK_SPEC: task_name(task),
        names.GROUP_NAME: names.job_pod_group_name(name, job.uid),
        names.JOB_NAME: name,
        names.QUEUE_NAME: job.spec.queue,
        names.JOB_VERSION: str(job.status.version),
        names.TEMPLATE_UID: f"{name}-{task_name(task)}",
        names.JOB_RETRY_COUNT: str(job.status.retry_count),
    }
    if task.topology_policy:
        notes[names.NUMA_TOPOLOGY_POLICY] = str(task.topology_policy)
    notes |= {key: given[key] for key in _FROM_JOB_ANNOTATIONS if key in given}
    budget = next((key for key in (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE) if key in given), None)
    if budget:
        notes[budget] = given[budget]
    if forwarded:
        notes[names.JOB_FORWARDING] = "true"
    return notes


def _labels(job: Job, task: TaskSpec, forwarded: bool) -> dict[str, str]:
    given = job.metadata.labels
    labels = {
        names.JOB_NAME: job.name,
        names.TASK_SPEC: task_name(task),
        names.JOB_NAMESPACE: job.namespace,
        names.QUEUE_NAME: job.spec.queue,
    }
    labels |= {key: given[key] for key in _FROM_JOB_LABELS if key in given}
    if forwarded:
        labels[names.JOB_FORWARDING] = "true"
    return labels


def _inherit(spec: MutableMapping[str, Any], job: Job) -> None:
    """Scheduler and priority class come from the job where the template is silent."""
    if not spec.get("schedulerName") and job.spec.scheduler_name:
        spec["schedulerName"] = job.spec.scheduler_name
    if not spec.get("priorityClassName") and job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name


def _mount_volumes(spec: JsonObject, job: Job, pod: str) -> None:
    """Mount the job's claims in every container (not in init containers). A claim named twice is mounted once."""
    seen = set[str]()
    for volume in job.spec.volumes:
        claim = volume.volume_claim_name
        if not claim or claim in seen:
            continue
        seen.add(claim)
        name = _volume_name(job, pod, claim)
        _append(spec, "volumes", {"name": name, "persistentVolumeClaim": {"claimName": claim}})
        for container in spec.get("containers") or ():
            _append(container, "volumeMounts", {"name": name, "mountPath": volume.mount_path})


def _append(holder: MutableMapping[str, Any], field: str, item: JsonObject) -> None:
    holder[field] = [*(holder.get(field) or ()), item]


def _volume_name(job: Job, pod: str, claim: str) -> str:
    """``<job>-<12 characters>``. Derived instead of drawn, so that building a pod twice gives the same pod."""
    return f"{job.name}-{digest(job.uid, str(job.status.version), pod, claim)}"


def digest(*parts: str) -> str:
    """Twelve characters of ``0-9a-z`` that stand for ``parts``."""
    number = int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest())
    text = ""
    for _ in range(12):
        number, digit = divmod(number, len(_DIGITS))
        text += _DIGITS[digit]
    return text
