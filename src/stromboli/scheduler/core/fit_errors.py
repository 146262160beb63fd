"""Why tasks found no node, as counts, and the texts made from them (spec 04 section 31)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stromboli.scheduler.core.reasons import POD_NUMBER_EXCEEDED, RESOURCE_FIT_FAILED
from stromboli.scheduler.core.records import Job, Task
from stromboli.scheduler.core.statuses import ALLOCATED_STATUSES, TaskStatus
from stromboli.scheduler.core.tables import Bools

__all__ = ["POD_NUMBER_EXCEEDED", "RESOURCE_FIT_FAILED", "FitErrors", "Outlook", "job_text", "outlook", "task_text"]


@dataclass(frozen=True, slots=True)
class FitErrors:
    """What one search met: how many nodes were refused for each reason."""

    nodes: int = 0
    """Nodes that were refused."""
    counts: Mapping[str, int] = field(default_factory=dict)
    text: str = ""
    """Takes the place of ``0/<n> nodes are unavailable``."""
    hyper_node: str = ""
    unresolvable: Bools | None = None
    """By row: refused with a code that eviction cannot help."""

    def __str__(self) -> str:
        base = self.text or f"0/{self.nodes} nodes are unavailable"
        if not self.nodes:
            return base
        parts = sorted(f"{count} {reason}" for reason, count in self.counts.items())
        where = f"In hyperNode {self.hyper_node}: " if self.hyper_node else ""
        return f"{where}{base}: {', '.join(parts)}."

    @classmethod
    def everywhere(cls, nodes: int, reason: str) -> FitErrors:
        """The same refusal recorded for every node."""
        return cls(nodes, {reason: nodes} if nodes else {})


def task_text(task: Task, node: str, reasons: Iterable[str]) -> str:
    """One task on one node."""
    return f"task {task.key} on node {node} fit failed: {', '.join(reason for reason in reasons if reason)}"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is to be said about a task that was not bound."""

    reason: str
    message: str
    nominated_node: str = ""


def outlook(task: Task) -> Outlook:
    """Reason, message and nominated node of one task (spec 04 section 31.3)."""
    last = task.last_transaction
    status = last.status if last is not None else task.status
    node = last.node if last is not None else task.node_name
    evicted = last.eviction_occurred if last is not None else task.eviction_occurred
    errors = task.job.fit_errors.get(task.uid) if task.job is not None else None
    match status:
        case TaskStatus.ALLOCATED:
            return Outlook(
                "Schedulable",
                f"Pod {task.key} can possibly be assigned to {node}, once minAvailable is satisfied",
            )
        case TaskStatus.PIPELINED:
            return Outlook(
                "Unschedulable",
                f"Pod {task.key} can possibly be assigned to {node}, "
                "once resource is released and minAvailable is satisfied",
                node if evicted else "",
            )
        case TaskStatus.PENDING:
            return Outlook("Unschedulable", str(errors) if errors is not None else "")
        case _:
            return Outlook(status.word, str(errors) if errors is not None else "")


def job_text(job: Job) -> str:
    """Where a job stands (spec 04 section 31.4)."""
    histogram = [f"{count} {TaskStatus(index).word}" for index, count in enumerate(job.counts) if count]
    histogram.append(f"{job.min_member} minAvailable")
    ready = "pod group is ready" if job.is_ready else "pod group is not ready"
    return f"{ready}, {', '.join(sorted(histogram))}{_pending(job)}{_origin(job)}"


def _pending(job: Job) -> str:
    if not job.counts[TaskStatus.PENDING]:
        return ""
    reasons = Counter(outlook(task).reason for task in job.tasks.values() if task.status == TaskStatus.PENDING)
    return f"; Pending: {', '.join(sorted(f'{count} {reason}' for reason, count in reasons.items()))}"


def _origin(job: Job) -> str:
    for uid, errors in job.fit_errors.items():
        task = job.tasks.get(uid)
        if task is not None:
            return f". Origin reason is {task.name}: {errors}"
    return ""


def unschedulable_count(job: Job) -> int:
    """Tasks that the job lacks, not counting those that could have been allocated; may be negative."""
    possible = sum(
        1
        for task in job.tasks.values()
        if task.status == TaskStatus.PENDING
        and task.last_transaction is not None
        and task.last_transaction.status in ALLOCATED_STATUSES
    )
    return job.min_member - (job.ready_count + possible)
