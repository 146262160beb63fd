"""Bringing the record of a CronJob up to date with its jobs (spec 03 section 7.3, steps 1 to 3). Pure.

The record is ``status.active`` and ``status.lastSuccessfulTime``. Whatever else happens in a pass, this comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stromboli.api import kinds
from stromboli.api.batch import CronJob
from stromboli.api.core import timestamp
from stromboli.api.meta import ObjectReference
from stromboli.api.phases import JobPhase
from stromboli.controllers.cronjob.children import Child, age_order, rfc3339
from stromboli.kube.events import EventType


@dataclass(frozen=True, slots=True)
class Note:
    """An Event about the CronJob."""

    type: EventType
    reason: str
    message: str


@dataclass(slots=True)
class Record:
    """What a CronJob knows of its jobs. Changed by one pass, then written if it differs from what is stored."""

    active: list[ObjectReference] = field(default_factory=list)
    last_schedule_time: str | None = None
    last_successful_time: str | None = None

    @classmethod
    def of(cls, cron_job: CronJob) -> Record:
        """What is stored."""
        status = cron_job.status
        return cls(list(status.active), status.last_schedule_time, status.last_successful_time)

    def add(self, namespace: str, child: Child) -> None:
        """Remember a running job, once."""
        if any(one.uid == child.uid for one in self.active):
            return
        self.active.append(
            ObjectReference(
                api_version=kinds.JOBS.api_version,
                kind=kinds.JOBS.kind,
                namespace=namespace,
                name=child.name,
                uid=child.uid,
            )
        )

    def drop(self, uid: str) -> None:
        """Forget a job."""
        self.active = [one for one in self.active if one.uid != uid]

    def to_wire(self) -> dict[str, object]:
        """As ``status``."""
        wire: dict[str, object] = {"active": [one.to_wire() for one in self.active]} if self.active else {}
        if self.last_schedule_time:
            wire["lastScheduleTime"] = self.last_schedule_time
        if self.last_successful_time:
            wire["lastSuccessfulTime"] = self.last_successful_time
        return wire


@dataclass(frozen=True, slots=True)
class Account:
    """The record after a look at the jobs, what to tell, which jobs are past the history limits, and unknown ones."""

    record: Record
    notes: tuple[Note, ...] = ()
    outdated: tuple[Child, ...] = ()
    orphans: tuple[Child, ...] = ()


def account(cron_job: CronJob, children: Sequence[Child], others: Mapping[str, Child | None], *, now: float) -> Account:
    """Take stock.

    ``others`` has, for each name in ``status.active`` that is none of ``children``, the job of that name that the
    server has, None if there is none.
    """
    record, notes = Record.of(cron_job), list[Note]()
    _finish(record, children, notes)
    _recover(record, cron_job, children, now)
    _drop_stale(record, children, others, notes)
    known = {one.uid for one in record.active}
    orphans = tuple(one for one in children if not one.finished and not one.deleting and one.uid not in known)
    return Account(record, tuple(notes), tuple(_outdated(cron_job, children)), orphans)


def _finish(record: Record, children: Sequence[Child], notes: list[Note]) -> None:
    active = {one.uid for one in record.active}
    for child in children:
        if child.finished and child.uid in active:
            record.drop(child.uid)
            notes.append(
                Note(EventType.NORMAL, "SawCompletedJob", f"Saw completed job: {child.name} in active, remove")
            )
        if child.phase == JobPhase.COMPLETED and timestamp(child.ended) > timestamp(record.last_successful_time):
            record.last_successful_time = child.ended


def _recover(record: Record, cron_job: CronJob, children: Sequence[Child], now: float) -> None:
    """Write down starts whose record was lost: the job was made, then the controller died or its write failed.

    Such a job has the name of a start later than the last one on record. Without this the next start would run
    beside it whatever the concurrency policy says.
    """
    for child in sorted(children, key=age_order):
        slot = child.slot(cron_job.name)
        if slot is None or child.deleting or not timestamp(record.last_schedule_time) < slot <= now:
            continue
        record.last_schedule_time = rfc3339(slot)
        if not child.finished:
            record.add(cron_job.namespace, child)


def _drop_stale(
    record: Record, children: Sequence[Child], others: Mapping[str, Child | None], notes: list[Note]
) -> None:
    owned = {one.uid for one in children}
    for reference in list(record.active):
        if reference.uid in owned:
            continue
        present = others.get(reference.name)
        if present is None:
            message = f'Active job "{reference.name}" no longer exists (UID: {reference.uid})'
        elif present.uid != reference.uid:
            message = (
                f'Active job reference "{reference.name}" points to a different UID '
                f"(expected: {reference.uid}, actual: {present.uid})"
            )
        else:
            continue
        record.drop(reference.uid)
        notes.append(Note(EventType.WARNING, "StaleReference", message))


def _outdated(cron_job: CronJob, children: Sequence[Child]) -> list[Child]:
    """Jobs beyond the history limits, oldest first. Terminated jobs count as neither success nor failure."""
    limits = {
        JobPhase.COMPLETED: cron_job.spec.successful_jobs_history_limit,
        JobPhase.FAILED: cron_job.spec.failed_jobs_history_limit,
    }
    outdated: list[Child] = []
    for phase, limit in limits.items():
        if limit is not None:
            found = sorted((one for one in children if one.phase == phase), key=age_order)
            outdated += [one for one in found[: max(0, len(found) - limit)] if not one.deleting]
    return outdated
