"""How near a gang came to being placed, and the PodGroup condition ``Fits`` that says so. An addition of ours.

``0/6 nodes are unavailable: 6 Insufficient cpu`` names a resource and no number. What its owner wants to know is how
much is missing where least is missing: the node that comes closest, after what has been found for the rest of the gang.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api.reasons import NEXT_STEPS, WaitReason
from stromboli.scheduler.core import amounts
from stromboli.scheduler.core.admitting import FITS, still_good
from stromboli.scheduler.core.columns import EPSILON
from stromboli.scheduler.core.view import Condition

if TYPE_CHECKING:
    from stromboli.scheduler.core.records import Job, Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View


@dataclass(frozen=True, slots=True)
class NearMiss:
    """The task that found no node, and what it met."""

    placed: int
    """Tasks of the job that had been found a node before."""
    message: str


def nearest(view: View, task: Task, rows: Rows) -> NearMiss | None:
    """What is missing where least is missing, among rows that nothing but amounts speaks against.

    None when there is no such row, or when amounts do not speak against the one that comes closest.
    """
    job, shape = task.job, task.shape
    if job is None or not len(rows):
        return None
    columns = np.array(shape.compared, dtype=np.intp)
    asked, left = shape.request[columns], view.nodes.future[np.ix_(rows, columns)]
    missing = np.where(left <= asked - EPSILON, (asked - left) / np.maximum(asked, 1.0), 0.0)
    closest = int(missing.sum(axis=1).argmin())
    short = np.nonzero(missing[closest])[0]
    node = view.node_list[int(rows[closest])]
    if node is None or not len(short):
        return None
    lacks = (_lack(view, columns[at], asked[at], max(left[closest, at], 0.0)) for at in short.tolist())
    placed = job.ready_count + job.waiting_count
    found = f"{placed} of {job.min_member} tasks found a node; " if placed else ""
    return NearMiss(placed, f"{found}{task.name} asks for {', '.join(lacks)} on {node.name}, which comes closest")


def _lack(view: View, column: int, asked: float, left: float) -> str:
    name = view.columns.names[column]
    wanted, there = (amounts.write({name: amount}).get(name, "0") for amount in (asked, left))
    return f"{wanted} {name}, and {there} is left"


def condition_of(job: Job, miss: NearMiss | None, now: float) -> Condition | None:
    """The condition to set on a job at the end of a cycle, or None to leave things as they are."""
    assert job.pod_group is not None
    old = next((item for item in job.pod_group.status.conditions if item.type == FITS), None)
    if job.is_ready:
        settled = old is None or old.status == "True"
        return None if settled else Condition(FITS, FITS, "there is a node for every task that the group needs")
    if miss is None:
        miss = _other_refusal(job) if old is not None and old.status == "False" else None
    if miss is None:
        return None
    word = WaitReason.GANG_INCOMPLETE if miss.placed else WaitReason.NODES_REFUSE
    condition = Condition(FITS, word, f"{miss.message}; {NEXT_STEPS[word]}", "False")
    return None if old is not None and still_good(old, condition, now) else condition


def _other_refusal(job: Job) -> NearMiss | None:
    """What nodes say now that amounts do not speak against the gang: what was written once must not outlive that."""
    refused = next((job.tasks[uid] for uid in job.fit_errors if uid in job.tasks), None)
    return None if refused is None else NearMiss(0, f"{refused.name}: {str(job.fit_errors[refused.uid]).rstrip('.')}")
