"""What a job says that cannot be carried out, though it can be read: nothing is wrong with the cluster, and it waits.

Admission refuses all of it. A job that came past admission is carried on with as far as it goes, and its owner is told
why it goes no further and what to change. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stromboli.api.batch import Job, LifecyclePolicy, TaskSpec
from stromboli.api.phases import Iteration, JobAction
from stromboli.controllers.job import pods

INVALID_JOB = "InvalidJob"


def first(job: Job) -> str:
    """The first contradiction, with the field and what to do about it; empty when there is none."""
    return next(_all(job), "")


def _all(job: Job) -> Iterator[str]:
    if not job.spec.tasks:
        yield "spec.tasks: there is none, so nothing will ever run: submit the job anew with a task"
    yield from _same_names(job)
    total = job.spec.total_replicas
    if 0 < total < job.spec.min_available:
        yield (
            f"spec.minAvailable: {job.spec.min_available} pods are to start together, but all tasks have only {total}: "
            "lower it, or raise the replicas of a task"
        )
    yield from _never_started(job)
    for position, task in enumerate(job.spec.tasks):
        yield from _uneven_partitions(position, task)
    yield from _unknown_actions("spec.policies", job.spec.policies)
    for position, task in enumerate(job.spec.tasks):
        yield from _unknown_actions(f"spec.tasks[{position}].policies", task.policies)


def _same_names(job: Job) -> Iterator[str]:
    seen: dict[str, int] = {}
    for position, task in enumerate(job.spec.tasks):
        name = pods.task_name(task)
        if name in seen:
            yield (
                f"spec.tasks[{position}].name: spec.tasks[{seen[name]}] is called {name} too, and pods are named after "
                "their task: submit the job anew with a name for each"
            )
        seen.setdefault(name, position)


def _never_started(job: Job) -> Iterator[str]:
    """Tasks that wait for others which are not there, or in the end for themselves."""
    startable = _startable(job)
    for position, task in enumerate(job.spec.tasks):
        if position not in startable:
            wanted = ", ".join(task.depends_on.name) if task.depends_on else ""
            yield (
                f"spec.tasks[{position}].dependsOn: {pods.task_name(task)} waits for {wanted}, which can never be "
                "ready: submit the job anew with tasks that wait for others of the job, and not in a circle"
            )


def _startable(job: Job) -> set[int]:
    """Positions of the tasks whose pods will be created, if those they wait for start as they should."""
    found: set[int] = set()
    while True:
        ready = {pods.task_name(task) for at, task in enumerate(job.spec.tasks) if _gets_ready(task, at in found)}
        more = {at for at, task in enumerate(job.spec.tasks) if at not in found and _may_start(task, ready)}
        if not more:
            return found
        found |= more


def _gets_ready(task: TaskSpec, starts: bool) -> bool:
    """A task that names no ``minAvailable`` is waited for by nobody."""
    return task.min_available is None or (starts and task.min_available <= task.replicas) or task.min_available == 0


def _may_start(task: TaskSpec, ready: set[str]) -> bool:
    wanted = task.depends_on
    if wanted is None or not wanted.name:
        return True
    some = wanted.iteration == Iteration.ANY
    return any(name in ready for name in wanted.name) if some else all(name in ready for name in wanted.name)


def _uneven_partitions(position: int, task: TaskSpec) -> Iterator[str]:
    policy = task.partition_policy
    if policy is None:
        return
    held = policy.total_partitions * policy.partition_size
    if held != task.replicas:
        yield (
            f"spec.tasks[{position}].partitionPolicy: {policy.total_partitions} partitions of {policy.partition_size} "
            f"hold {held} pods, but the task has {task.replicas}: make replicas {held}, or submit the job anew with "
            "other partitions"
        )


def _unknown_actions(field: str, policies: Iterable[LifecyclePolicy]) -> Iterator[str]:
    for position, policy in enumerate(policies):
        if policy.action and policy.action not in {str(one) for one in JobAction}:
            yield f"{field}[{position}].action: {policy.action} is no action, so the policy does nothing: correct it"
