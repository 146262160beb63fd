"""``dependsOn``: which tasks may start (spec 02 section 13).

Nothing waits here: a task whose condition is not met gets no pods in this pass, and the next event of a pod it depends
on brings the job back. A succeeded pod is as good as a ready one.
"""

from __future__ import annotations

from stromboli.api.batch import TaskSpec
from stromboli.api.phases import Iteration
from stromboli.controllers.job import pods, successes
from stromboli.controllers.job.members import Member
from stromboli.controllers.job.observed import Observed


def may_start(view: Observed, task: TaskSpec) -> bool:
    """Whether the tasks that ``task`` depends on are ready: any of them, or all."""
    wanted = task.depends_on
    if wanted is None or not wanted.name:
        return True
    ready = [_ready(view, name) for name in wanted.name]
    return any(ready) if wanted.iteration == Iteration.ANY and len(ready) > 1 else all(ready)


def _ready(view: Observed, name: str) -> bool:
    """Whether ``minAvailable`` pods of the task run and are ready, or have succeeded. An unknown task never is."""
    task = next((one for one in view.job.spec.tasks if pods.task_name(one) == name), None)
    if task is None:
        return False
    if task.min_available is None:
        return True
    done = successes.of(view.job, name)
    standing = [one for one in view.members if one.task == name and not one.terminating and _in_range(one, task)]
    fit = {one.index for one in standing if one.phase == "Succeeded" or (one.phase == "Running" and one.all_ready)}
    return len(fit | done) >= task.min_available


def _in_range(member: Member, task: TaskSpec) -> bool:
    return member.index is not None and member.index < task.replicas
