"""Jobs by state, with why each of them waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from stromboli.api import core
from stromboli.api.phases import JobPhase
from stromboli.api.reasons import WaitReason
from stromboli.dashboard.moments import created
from stromboli.dashboard.objects import Job
from stromboli.dashboard.sights import Sight
from stromboli.dashboard.waiting import NOTHING, Why, told, why

ENDED: Final = frozenset({JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.ABORTED, JobPhase.TERMINATED})


@dataclass(frozen=True, slots=True)
class JobRow:
    """A vcjob. ``group`` is the phase of its PodGroup."""

    namespace: str
    name: str
    queue: str
    state: str
    group: str
    pods: int
    least: int
    running: int
    succeeded: int
    failed: int
    created: float
    why: Why

    @property
    def words(self) -> tuple[str, ...]:
        """What a search looks at."""
        return f"{self.namespace}/{self.name}", self.queue, self.why.reason, self.why.message


def state(job: Job) -> str:
    """The job's phase; one that has none yet is pending."""
    return job.status.state.phase or JobPhase.PENDING


def counts(jobs: Iterable[Job]) -> dict[str, int]:
    """Jobs by state: those that go on in the order of a life, then those that have ended; states without jobs are left
    out.
    """
    found = Counter(state(job) for job in jobs)
    known = [phase for phase in JobPhase if phase not in ENDED] + [phase for phase in JobPhase if phase in ENDED]
    others = sorted(set(found) - set(known))
    return {str(phase): found[phase] for phase in [*known, *others] if found[phase]}


def rows(sight: Sight) -> list[JobRow]:
    """All jobs: first those that wait, the longest waiting on top, then what runs, then what ended, newest on top."""
    groups = by_owner(sight.groups)
    found = [_row(job, groups.get(job.uid)) for job in sight.jobs]
    return sorted(found, key=_order)


def by_owner(groups: Iterable[core.PodGroup]) -> dict[str, core.PodGroup]:
    """PodGroups by the UID of each of their owners."""
    return {owner.uid: group for group in groups for owner in group.metadata.owner_references}


def waiting(found: Iterable[JobRow]) -> list[JobRow]:
    """Those of the rows that wait, in their order."""
    return [row for row in found if row.why.reason]


def _order(row: JobRow) -> tuple[int, float, str, str]:
    rank = 0 if row.why.reason else 2 if row.state in ENDED else 1
    return rank, row.created if rank == 0 else -row.created, row.namespace, row.name


def _row(job: Job, group: core.PodGroup | None) -> JobRow:
    status = job.status
    return JobRow(
        job.namespace,
        job.name,
        job.spec.queue or "default",
        state(job),
        group.status.phase if group else "",
        sum(task.replicas for task in job.spec.tasks),
        job.spec.min_available,
        status.running,
        status.succeeded,
        status.failed,
        created(job),
        _why(job, group),
    )


def _why(job: Job, group: core.PodGroup | None) -> Why:
    if state(job) != JobPhase.PENDING:
        return NOTHING
    if group is None:
        return told(WaitReason.POD_GROUP_MISSING, "its PodGroup has not been made yet")
    return why(group)


def running_on(sight: Sight) -> Mapping[str, Mapping[str, int]]:
    """Jobs (``namespace/name``) with their number of pods, by node."""
    found: dict[str, dict[str, int]] = {}
    for pod in sight.pods:
        if pod.holds and pod.owner:
            on_node = found.setdefault(pod.node, {})
            job = f"{pod.namespace}/{pod.owner}"
            on_node[job] = on_node.get(job, 0) + 1
    return found
