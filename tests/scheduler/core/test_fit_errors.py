"""Texts about tasks and jobs that wait (spec 04 sections 31 and 35)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stromboli.scheduler.core.fit_errors import (
    POD_NUMBER_EXCEEDED,
    RESOURCE_FIT_FAILED,
    FitErrors,
    job_text,
    outlook,
    task_text,
    unschedulable_count,
)
from stromboli.scheduler.core.records import Job, Transaction
from stromboli.scheduler.core.statuses import TaskStatus
from stromboli.testing.builders import pod, pod_group, queue
from tests.scheduler.core.worlds import world

TEXTS = {
    "no node at all": (FitErrors(), "0/0 nodes are unavailable"),
    "no node and a text": (FitErrors(text="fit failed"), "fit failed"),
    "a text and a node": (
        FitErrors(1, {POD_NUMBER_EXCEEDED: 1}, text="fit failed"),
        "fit failed: 1 node(s) pod number exceeded.",
    ),
    "inside a HyperNode": (
        FitErrors(1, {POD_NUMBER_EXCEEDED: 1}, hyper_node="hyperNode1"),
        "In hyperNode hyperNode1: 0/1 nodes are unavailable: 1 node(s) pod number exceeded.",
    ),
    "reasons sorted as text": (
        FitErrors(12, {RESOURCE_FIT_FAILED: 2, POD_NUMBER_EXCEEDED: 10}),
        "0/12 nodes are unavailable: 10 node(s) pod number exceeded, 2 node(s) resource fit failed.",
    ),
    "the same everywhere": (FitErrors.everywhere(3, "no"), "0/3 nodes are unavailable: 3 no."),
    "everywhere in an empty cluster": (FitErrors.everywhere(0, "no"), "0/0 nodes are unavailable"),
}


@pytest.mark.parametrize(("errors", "want"), TEXTS.values(), ids=TEXTS.keys())
def test_text_of_a_search(errors: FitErrors, want: str) -> None:
    assert str(errors) == want


def job_of(count: int, minimum: int) -> Job:
    mirror = world(
        queue().build(),
        pod_group("g").members(minimum).build(),
        [pod(f"task-{index}").group("g").request(cpu=1).build() for index in range(1, count + 1)],
    )
    return mirror.jobs["ns/g"]


def test_text_of_a_job_with_numbers() -> None:
    job = job_of(6, 6)
    tasks = {task.name: task for task in job.tasks.values()}
    for index in (1, 2, 3):
        tasks[f"task-{index}"].last_transaction = Transaction(TaskStatus.ALLOCATED, "n1", False)
    job.fit_errors[tasks["task-6"].uid] = FitErrors(3, {POD_NUMBER_EXCEEDED: 1, RESOURCE_FIT_FAILED: 2})
    assert job_text(job) == (
        "pod group is not ready, 6 Pending, 6 minAvailable; Pending: 3 Schedulable, 3 Unschedulable. "
        "Origin reason is task-6: 0/3 nodes are unavailable: 1 node(s) pod number exceeded, "
        "2 node(s) resource fit failed."
    )
    assert unschedulable_count(job) == 3


def test_text_of_a_job_without_pending_tasks() -> None:
    mirror = world(
        queue().build(), pod_group("g").members(1).build(), pod("p").group("g").request(cpu=1).on("n").build()
    )
    assert job_text(mirror.jobs["ns/g"]) == "pod group is ready, 1 Running, 1 minAvailable"


@dataclass(frozen=True)
class OutlookCase:
    status: TaskStatus
    want_reason: str
    want_message: str
    evicted: bool = False
    want_nominated: str = ""
    errors: FitErrors | None = None


OUTLOOKS = {
    "allocated": OutlookCase(
        TaskStatus.ALLOCATED,
        "Schedulable",
        "Pod ns/task-1 can possibly be assigned to n1, once minAvailable is satisfied",
    ),
    "pipelined without evictions": OutlookCase(
        TaskStatus.PIPELINED,
        "Unschedulable",
        "Pod ns/task-1 can possibly be assigned to n1, once resource is released and minAvailable is satisfied",
    ),
    "pipelined after evictions": OutlookCase(
        TaskStatus.PIPELINED,
        "Unschedulable",
        "Pod ns/task-1 can possibly be assigned to n1, once resource is released and minAvailable is satisfied",
        evicted=True,
        want_nominated="n1",
    ),
    "pending and refused": OutlookCase(
        TaskStatus.PENDING, "Unschedulable", "0/1 nodes are unavailable: 1 no.", errors=FitErrors(1, {"no": 1})
    ),
    "pending and never tried": OutlookCase(TaskStatus.PENDING, "Unschedulable", ""),
    "something else": OutlookCase(TaskStatus.RELEASING, "Releasing", ""),
}


@pytest.mark.parametrize("case", OUTLOOKS.values(), ids=OUTLOOKS.keys())
def test_what_is_said_about_a_task(case: OutlookCase) -> None:
    (task,) = job_of(1, 1).tasks.values()
    assert task.job is not None
    if case.errors is not None:
        task.job.fit_errors[task.uid] = case.errors
    task.last_transaction = Transaction(case.status, "n1", case.evicted)
    told = outlook(task)
    assert (told.reason, told.message, told.nominated_node) == (
        case.want_reason,
        case.want_message,
        case.want_nominated,
    )


def test_text_of_one_task_on_one_node() -> None:
    (task,) = job_of(1, 1).tasks.values()
    text = task_text(task, "n1", ["Insufficient cpu", "", "node(s) pod number exceeded"])
    assert text == "task ns/task-1 on node n1 fit failed: Insufficient cpu, node(s) pod number exceeded"
