"""Writing what a cycle found out about jobs and queues (spec 04 sections 30 and 32).

A job's PodGroup is written first. When that fails, most often because somebody else was quicker, nothing else about the
job is said in this cycle: the next one works it out anew. PodGroups have no status subresource, so their status is
patched in place; the resourceVersion and UID in the patch refuse it when it was decided over an outdated or different
object.

A new phase is written at once. Why a job or a pod was not placed is written only when it has still not been placed a
few cycles later: pods of a gang come one after the other, and what is true while the last are missing is of no use to
anybody a second later. Counts of running pods, which change with each of them, wait in the same way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from stromboli.api import core
from stromboli.api.kinds import POD_GROUPS, QUEUES
from stromboli.kube.client import Client, PatchType
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import Conflict, KubeError, NotFound
from stromboli.kube.json import JsonObject
from stromboli.scheduler import sparing
from stromboli.scheduler.coalescing import LatestWriter
from stromboli.scheduler.conditions import MESSAGE_LIMIT, PodConditions, bounded
from stromboli.scheduler.core.results import CycleResult, PodGroupUpdate, PodUpdate, QueueUpdate, TaskRef
from stromboli.scheduler.core.view import JobEvent
from stromboli.scheduler.eventing import PodEvents

log = logging.getLogger(__name__)

JOB_WORKERS = 16
POD_WRITES = 16
PATIENT_CYCLES = 3
"""Periods that jobs and pods are given to be placed before they are told that they were not."""
PHASES_REMEMBERED = 65_536
QUEUE_SPACING_SECONDS = 1.0


@dataclass(slots=True)
class JobWrites:
    """What is to be said about one job."""

    group: PodGroupUpdate | None = None
    resource_version: str = ""
    """Of the PodGroup over which the cycle decided."""
    events: list[JobEvent] = field(default_factory=list)
    pods: dict[str, PodUpdate] = field(default_factory=dict)
    """By UID."""
    patient: bool = False
    """Whether this has waited for what might make it needless."""
    placed: bool = False
    """Whether the cycle has placed the gang, so that nobody needs to be warned any more that it waited."""

    def followed_by(self, later: JobWrites) -> JobWrites:
        """This and what a later cycle says: the later word counts, and what only this one says is kept."""
        events = [event for event in self.events if not sparing.is_warning(event)] if later.placed else self.events
        return JobWrites(
            later.group or self.group,
            later.resource_version if later.group else self.resource_version,
            later.events or events,
            {**self.pods, **later.pods},
            self.patient and later.patient,
            later.placed or (self.placed and not later.group),
        )


def by_job(result: CycleResult, versions: Mapping[str, str]) -> dict[str, JobWrites]:
    """The cycle's writes, job by job; ``versions`` holds the resourceVersion of each PodGroup."""
    jobs: dict[str, JobWrites] = {}
    for group in result.pod_groups:
        writes = jobs.setdefault(group.job_id, JobWrites())
        writes.group, writes.resource_version = group, versions.get(group.job_id, "")
        writes.placed = sparing.is_placed(group, result.session_id)
    for event in result.events:
        jobs.setdefault(event.job_id, JobWrites()).events.append(event)
    for pod in result.pods:
        jobs.setdefault(pod.task.job_id, JobWrites()).pods[pod.task.uid] = pod
    return jobs


class JobWriter:
    """PodGroup statuses, their events, and the conditions of their pods."""

    def __init__(
        self,
        client: Client,
        conditions: PodConditions,
        events: PodEvents,
        *,
        on_written: Callable[[core.PodGroup], None],
        on_refused: Callable[[str], None],
        on_pod_refused: Callable[[TaskRef], None],
        patience: float = 0.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._on_pod_refused = on_pod_refused
        self._conditions = conditions
        self._events = events
        self._on_written = on_written
        self._on_refused = on_refused
        self._under_way: dict[str, JobWrites] = {}
        self._phases: dict[str, str] = {}
        self._writer = LatestWriter[str, JobWrites](
            "scheduler-jobs",
            self._write,
            workers=JOB_WORKERS,
            delay=patience,
            merge=JobWrites.followed_by,
            clock=clock,
        )
        self._pods = LatestWriter[str, PodUpdate](
            "scheduler-pods", self._write_pod, workers=POD_WRITES, delay=patience, clock=clock
        )

    def submit(self, jobs: Mapping[str, JobWrites]) -> None:
        """Write these: new phases as soon as possible, the rest after the patience that jobs and pods are given."""
        for job_id, writes in jobs.items():
            writes.patient = not self._is_urgent(job_id, writes)
            self._writer.put(job_id, writes, at_once=not writes.patient)

    def _is_urgent(self, job_id: str, writes: JobWrites) -> bool:
        """Whether somebody waits for it: for a phase, or for the node that a preemptor holds."""
        if any(pod.nominated_node for pod in writes.pods.values()):
            return True
        if writes.group is None:
            return False
        phase = writes.group.status.phase
        known = self._phases.get(job_id)
        if len(self._phases) >= PHASES_REMEMBERED:
            self._phases.clear()  # so that jobs that are gone do not pile up; the others are written early once
        self._phases[job_id] = phase
        return known != phase

    def is_busy(self, job_id: str) -> bool:
        """Whether something about this job is still to be written, or being written."""
        return job_id in self._under_way or self._writer.waiting(job_id) is not None

    def placed(self, task: TaskRef) -> None:
        """There is no more to be said about why this pod waits."""
        for writes in (self._writer.waiting(task.job_id), self._under_way.get(task.job_id)):
            if writes is not None:
                writes.pods.pop(task.uid, None)
        self._pods.forget(task.uid)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._writer.run())
            tasks.create_task(self._pods.run())

    async def _write(self, job_id: str, writes: JobWrites) -> None:
        self._under_way[job_id] = writes
        try:
            if writes.group is not None and not await self._write_group(writes.group, writes.resource_version):
                self._phases.pop(job_id, None)
                self._on_refused(job_id)
                return
        finally:
            del self._under_way[job_id]
        for event in writes.events:
            self._events.pod_group(event.job_id, event.uid, event.type, event.reason, event.message)
        for uid, pod in writes.pods.items():
            self._pods.put(uid, pod, at_once=writes.patient or bool(pod.nominated_node))

    async def _write_group(self, update: PodGroupUpdate, resource_version: str) -> bool:
        namespace, _, name = update.job_id.partition("/")
        patch = pod_group_patch(update, resource_version)
        try:
            answer = await self._client.patch(POD_GROUPS, name, patch, namespace)
        except (Conflict, NotFound) as error:
            log.debug("PodGroup %s: %s; the next cycle decides anew", update.job_id, error)
            return False
        except KubeError as error:
            log.warning("PodGroup %s: status could not be written: %s", update.job_id, error)
            return False
        self._on_written(core.from_builtins(core.PodGroup, answer))
        return True

    async def _write_pod(self, _uid: str, pod: PodUpdate) -> None:
        self._events.pod(pod.task, "Warning", "FailedScheduling", pod.message)
        if not await self._conditions.unscheduled(pod.task, pod.reason, pod.message, pod.nominated_node):
            self._on_pod_refused(pod.task)


def pod_group_patch(update: PodGroupUpdate, resource_version: str) -> JsonObject:
    """A merge patch of the status alone; what is zero is removed, because absent would mean unchanged."""
    status = update.status
    metadata: JsonObject = {"uid": update.uid}
    if resource_version:
        metadata["resourceVersion"] = resource_version
    conditions = [
        {**core.to_builtins(condition), "message": bounded(condition.message, MESSAGE_LIMIT)}
        for condition in status.conditions
    ]
    counters = {name: getattr(status, name) or None for name in ("running", "succeeded", "failed")}
    return {"metadata": metadata, "status": {"phase": status.phase, "conditions": conditions or None, **counters}}


class QueueWriter:
    """``status.allocated`` of queues: the one field of a queue that the scheduler owns, at most once a second."""

    def __init__(
        self, client: Client, *, field_manager: str, on_refused: Callable[[str], None], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._client = client
        self._on_refused = on_refused
        self._field_manager = field_manager
        self._writer = LatestWriter[str, QueueUpdate](
            "scheduler-queues", self._write, workers=4, spacing=QUEUE_SPACING_SECONDS, clock=clock
        )

    def submit(self, updates: Iterable[QueueUpdate]) -> None:
        """Write these as soon as their time has come."""
        for update in updates:
            self._writer.put(update.name, update)

    def forget(self, name: str) -> None:
        """The queue is gone."""
        self._writer.forget(name)

    async def run(self) -> None:
        """Write until cancelled."""
        await self._writer.run()

    async def _write(self, name: str, update: QueueUpdate) -> None:
        body = {
            "apiVersion": QUEUES.api_version,
            "kind": QUEUES.kind,
            "metadata": {"name": name, "uid": update.uid},
            "status": {"allocated": dict(update.allocated)},
        }
        try:
            answer = await self._client.patch(
                QUEUES,
                name,
                body,
                type=PatchType.APPLY,
                subresource="status",
                field_manager=self._field_manager,
                force=True,
            )
            await self._release(name, update, answer)
        except KubeError as error:
            log.warning("queue %s: status.allocated could not be written: %s", name, error)
            self._on_refused(name)

    async def _release(self, name: str, update: QueueUpdate, answer: JsonObject) -> None:
        """Remove amounts that applying has left because somebody else set them: a scheduler that ran before under
        another name, or one that did not apply at all. Nothing else would ever take them away.
        """
        leftovers = _allocated_in(answer).keys() - update.allocated.keys()
        if leftovers:
            patch = {"metadata": {"uid": update.uid}, "status": {"allocated": dict.fromkeys(sorted(leftovers))}}
            await self._client.patch(QUEUES, name, patch, subresource="status", field_manager=self._field_manager)


def _allocated_in(queue: JsonObject) -> Mapping[str, object]:
    """``status.allocated`` of a queue as the API server holds it."""
    return (queue.get("status") or {}).get("allocated") or {}
