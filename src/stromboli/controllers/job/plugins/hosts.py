"""Host names of a job's pods, as several plugins spell them (spec 02 section 21)."""

from __future__ import annotations

from stromboli.api import names
from stromboli.api.batch import Job, TaskSpec
from stromboli.controllers.job import pods


def host(job: Job, task: TaskSpec, index: int) -> tuple[str, str]:
    """``(hostname, subdomain)`` of a replica: the template's, else made from the names of pod and job."""
    spec = task.template.spec
    return spec.hostname or names.job_pod_name(job.name, pods.task_name(task), index), spec.subdomain or job.name


def address(job: Job, task: TaskSpec, index: int) -> str:
    """``<hostname>.<subdomain>`` of a replica."""
    return ".".join(host(job, task, index))


def replicas_with_hosts(task: TaskSpec) -> int:
    """Distinct hosts of a task: a hostname in the template is shared by all replicas and counts once."""
    return min(task.replicas, 1) if task.template.spec.hostname else task.replicas


def addresses(job: Job, task: TaskSpec) -> list[str]:
    """Addresses of all replicas, also when a hostname in the template makes them the same."""
    return [address(job, task, index) for index in range(task.replicas)]


def distinct_addresses(job: Job, task: TaskSpec) -> list[str]:
    """Addresses of the task's distinct hosts."""
    return [address(job, task, index) for index in range(replicas_with_hosts(task))]
