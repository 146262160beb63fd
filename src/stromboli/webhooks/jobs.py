"""Jobs: what a new job is given, and which jobs and changes are accepted (spec 07 sections 7 to 10).

Texts and their order are part of the contract: fragments are concatenated, blanks and semicolons included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cache
from importlib.metadata import entry_points
from itertools import chain
from typing import Any, Final

from stromboli.api import names, quantities
from stromboli.webhooks import job_updates, topologies
from stromboli.webhooks.context import DEFAULT_SCHEDULER, Context, Operation
from stromboli.webhooks.errors import FieldError, Reason, first_said, not_found, sentence, some, unsaid
from stromboli.webhooks.job_policies import policy_faults
from stromboli.webhooks.job_updates import DEFAULT_MAX_RETRY
from stromboli.webhooks.mpi import master_name
from stromboli.webhooks.naming import dns_subdomain_faults, qualified_name_faults
from stromboli.webhooks.queue_tree import missing
from stromboli.webhooks.shapes import Job, JsonObject, Task, Volume, read

PLUGINS: Final = frozenset(("ssh", "env", "svc", "tensorflow", "mpi", "pytorch", "hcclrank", "ray"))
NEED_SVC: Final = frozenset(("tensorflow", "mpi", "pytorch", "ray"))
OPEN: Final = "Open"
MOST_TASKS: Final = 10_000
"""Jobs of more tasks cannot be stored anyhow: with one container each they are larger than an object may be."""


@cache
def known_plugins() -> frozenset[str]:
    """The job plugins that are shipped, and those of packages that are installed beside."""
    return PLUGINS | {point.name for point in entry_points(group=names.JOB_PLUGIN_ENTRY_POINTS)}


# Defaults


def default(obj: JsonObject, context: Context) -> JsonObject:
    """The job with queue, scheduler, retries, task names, minimums and the plugins that its plugins need.

    A job without ``spec`` or with far too many tasks is left alone: validation refuses it with a text that helps.
    """
    job = read(Job, obj)
    if "spec" not in obj or len(job.spec.tasks) > MOST_TASKS:
        return obj
    obj = deepcopy(obj)
    spec = obj["spec"]
    if not job.spec.queue:
        spec["queue"] = "default"
    if not job.spec.scheduler_name:
        spec["schedulerName"] = next(iter(context.settings.scheduler_names), DEFAULT_SCHEDULER)
    if job.spec.max_retry == 0:
        spec["maxRetry"] = DEFAULT_MAX_RETRY
    for index, task in enumerate(job.spec.tasks):
        _default_task(spec["tasks"][index], task, index)
    if job.spec.min_available == 0:
        spec["minAvailable"] = sum(task["minAvailable"] for task in spec.get("tasks", ()))
    if job.spec.plugins is not None:
        spec["plugins"] |= _needed_plugins(job.spec.plugins)
    return obj


def _default_task(obj: JsonObject, task: Task, index: int) -> None:
    if not task.name:
        obj["name"] = f"default{index}"
    pod = obj.get("template", {}).get("spec", {})
    if isinstance(pod, dict) and pod.get("hostNetwork") is True and not pod.get("dnsPolicy"):
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"
    if task.min_available is None:
        obj["minAvailable"] = _least(task)
    if task.max_retry == 0:
        obj["maxRetry"] = DEFAULT_MAX_RETRY


def _least(task: Task) -> int:
    policy = task.partition_policy
    return policy.min_partitions * policy.partition_size if policy and policy.min_partitions > 0 else task.replicas


def _needed_plugins(plugins: dict[str, list[str]]) -> dict[str, list[str]]:
    needed: dict[str, list[str]] = {}
    if NEED_SVC & plugins.keys() and "svc" not in plugins:
        needed["svc"] = []
    if "mpi" in plugins and "ssh" not in plugins:
        needed["ssh"] = []
    return needed


# Validation


def templates(obj: JsonObject) -> list[JsonObject]:
    """The pod templates of a job, for the API server to look at."""
    return [task.template for task in read(Job, obj).spec.tasks]


def validate(obj: JsonObject | None, old: JsonObject | None, context: Context) -> list[FieldError]:
    """The faults of a new job or of a change."""
    job = read(Job, obj)
    if context.operation == Operation.UPDATE:
        return job_updates.update_faults(obj or {}, old or {}, job)
    if not job.spec.tasks:
        return [sentence("spec.tasks", "No task specified in job spec", Reason.REQUIRED)]
    if len(job.spec.tasks) > MOST_TASKS:
        text = f"too many tasks: {len(job.spec.tasks)}, must have at most {MOST_TASKS} items"
        return [sentence("spec.tasks", text)]
    if excess := job_updates.replica_faults(job):
        return excess
    faults = _creation_faults(job, context)
    if not _has_mpi_master(job):
        text = "The specified mpi master task was not found"
        faults = first_said(chain([sentence("spec.plugins.mpi", text, Reason.NOT_FOUND)], faults))
    return some(faults)


def _creation_faults(job: Job, context: Context) -> Iterator[FieldError]:
    yield from topologies.tier_faults(job.spec.network_topology, "spec.networkTopology")
    tasks = list(_distinct(job.spec.tasks))
    for index, task in enumerate(tasks):
        yield from _task_faults(index, task, job, context)
    visited = job.spec.tasks[: len(tasks) + 1]
    if len(tasks) < len(job.spec.tasks):
        repeated = job.spec.tasks[len(tasks)]
        yield from _minimum_faults(repeated, len(tasks), job)
        field = f"spec.tasks[{len(tasks)}].name"
        yield sentence(field, f" duplicated task name {repeated.name};", Reason.DUPLICATE)
        yield from unsaid(_later_task_faults(len(tasks) + 1, job, context))
    name = job.metadata.name
    if faults := qualified_name_faults(name):
        yield sentence("metadata.name", f"create job with name {name} validate failed [{' '.join(faults)}]")
    if sum(task.replicas for task in visited) < job.spec.min_available:
        yield sentence("spec.minAvailable", " job 'minAvailable' should not be greater than total replicas in tasks;")
    yield from policy_faults(job.spec.policies, "spec.policies")
    for plugin in sorted((job.spec.plugins or {}).keys() - known_plugins()):
        yield sentence(f"spec.plugins.{plugin}", f" unable to find job plugin: {plugin};", Reason.NOT_FOUND)
    yield from first_said(_volume_faults(job.spec.volumes))
    yield from _queue_faults(job.spec.queue, context)
    if any(task.depends_on for task in visited) and not _is_acyclic(job.spec.tasks):
        text = " job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"
        yield sentence("spec.tasks", text)
        yield from unsaid(_unknown_dependencies(job.spec.tasks))


def _later_task_faults(start: int, job: Job, context: Context) -> Iterator[FieldError]:
    """Faults of the tasks from ``start`` on, behind the first repeated name; the original does not look at them."""
    names = {task.name for task in job.spec.tasks[:start]}
    for index, task in enumerate(job.spec.tasks[start:], start):
        yield from _task_faults(index, task, job, context)
        if task.name in names:
            yield sentence(f"spec.tasks[{index}].name", f"duplicated task name {task.name}", Reason.DUPLICATE)
        names.add(task.name)


def _distinct(tasks: Sequence[Task]) -> Iterator[Task]:
    """The tasks before the first repeated name."""
    names: set[str] = set()
    for task in tasks:
        if task.name in names:
            return
        names.add(task.name)
        yield task


def _task_faults(index: int, task: Task, job: Job, context: Context) -> Iterator[FieldError]:
    field = f"spec.tasks[{index}]"
    yield from _minimum_faults(task, index, job)
    yield from policy_faults(task.policies, "spec.tasks.policies", f"{field}.policies")
    yield from _pod_name_faults(index, task, job)
    template_faults = context.templates.faults(task.name, job.metadata.namespace, task.template)
    for position, fault in enumerate(template_faults):
        place = f"spec.task[{index}]." if position == 0 else ""
        yield sentence(f"{field}.{fault.field}", f"{place}{fault.text}. ", fault.reason)
    if not template_faults:
        yield from _numa_faults(index, task)
    yield from topologies.partition_faults(task, field, job.metadata.name)


def _minimum_faults(task: Task, index: int, job: Job) -> Iterator[FieldError]:
    if task.min_available is not None and task.min_available > task.replicas:
        text = f" 'minAvailable' is greater than 'replicas' in task: {task.name}, job: {job.metadata.name};"
        yield sentence(f"spec.tasks[{index}].minAvailable", text)


def _pod_name_faults(index: int, task: Task, job: Job) -> Iterator[FieldError]:
    # The original tests the task's index, which a pod's name ends with only by chance. The longest name is the last
    # replica's; the task's index is tested too so that whatever the original refuses stays refused.
    for number in sorted({index, max(index, task.replicas - 1)}):
        name = f"{job.metadata.name}-{task.name}-{number}"
        if faults := qualified_name_faults(name):
            text = f"create pod with name {name} validate failed [{' '.join(faults)}];"
            yield sentence(f"spec.tasks[{index}].name", text)
            return


def _numa_faults(index: int, task: Task) -> Iterator[FieldError]:
    if task.topology_policy in ("", "none"):
        return
    pod = task.template.get("spec") or {}
    containers = [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]
    for number, container in enumerate(containers):
        if not _has_whole_cpus(container.get("resources") or {}):
            field = f"spec.tasks[{index}].topologyPolicy"
            yield sentence(field, f"the cpu request isn't  an integer in spec.task[{index}] container[{number}].")
            return


def _has_whole_cpus(resources: dict[str, Any]) -> bool:
    cpu = (resources.get("requests") or resources.get("limits") or {}).get("cpu")
    if not quantities.is_quantity(cpu):
        return False
    amount = quantities.parse(cpu)
    return amount != 0 and amount.denominator == 1


def _has_mpi_master(job: Job) -> bool:
    if "mpi" not in (job.spec.plugins or {}):
        return True
    master = master_name((job.spec.plugins or {})["mpi"])
    return any(task.name == master for task in job.spec.tasks)


def _volume_faults(volumes: Sequence[Volume]) -> Iterator[FieldError]:
    paths: set[str] = set()
    for index, volume in enumerate(volumes):
        if (text := _volume_text(volume, paths)) is not None:
            yield sentence(f"spec.volumes[{index}]", text)
        paths.add(volume.mount_path)


def _volume_text(volume: Volume, paths: set[str]) -> str | None:
    name = volume.volume_claim_name
    if not volume.mount_path:
        return " mountPath is required;"
    if volume.mount_path in paths:
        return f" duplicated mountPath: {volume.mount_path};"
    if volume.volume_claim is None and not name:
        return " either VolumeClaim or VolumeClaimName must be specified;"
    if volume.volume_claim is not None and name:
        return (
            "conflict: If you want to use an existing PVC, just specify VolumeClaimName."
            "If you want to create a new PVC, you do not need to specify VolumeClaimName"
        )
    faults = dns_subdomain_faults(name) if name else []
    return f"invalid VolumeClaimName {name} : [{' '.join(faults)}]" if faults else None


def _queue_faults(name: str, context: Context) -> Iterator[FieldError]:
    field, queue = "spec.queue", context.cluster.queue(name)
    if queue is None:
        yield sentence(field, f" unable to find job queue: {missing(name)};", Reason.NOT_FOUND)
        return
    if (state := queue.status.state) != OPEN:
        text = f" can only submit job to queue with state `Open`, queue `{name}` status is `{state}`;"
        yield sentence(field, text)
    if name == "root":
        yield sentence(field, " can not submit job to root queue;", Reason.FORBIDDEN)
    elif children := context.cluster.children(name):
        count = len(children)
        text = f" can only submit job to leaf queue, queue `{name}` has {count} child queues;"
        yield sentence(field, text, Reason.FORBIDDEN)


def _unknown_dependencies(tasks: Sequence[Task]) -> Iterator[FieldError]:
    known = {task.name for task in tasks}
    for index, task in enumerate(tasks):
        for number, name in enumerate(task.depends_on.name if task.depends_on else ()):
            if name not in known:
                yield not_found(f"spec.tasks[{index}].dependsOn.name[{number}]", name)


def _is_acyclic(tasks: Sequence[Task]) -> bool:
    """Whether taking away tasks without unmet dependencies, again and again, takes away all of them."""
    waits = {task.name: len(task.depends_on.name) if task.depends_on else 0 for task in tasks}
    dependants: dict[str, list[str]] = {}
    for task in tasks:
        for name in set(task.depends_on.name) if task.depends_on else ():
            dependants.setdefault(name, []).append(task.name)
    ready = [name for name, count in waits.items() if count == 0]
    for name in ready:
        for dependant in dependants.get(name, ()):
            waits[dependant] -= 1
            if waits[dependant] == 0:
                ready.append(dependant)
    return len(ready) == len(waits)
