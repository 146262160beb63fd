"""The controller of CronJobs: observes jobs, takes stock, starts what is due, and writes what changed.

A start happens at most once: its job's name follows from its time, and a start whose record was lost is found again by
that name (:mod:`.accounting`). The record is written under the version that was read, so a pass over an outdated copy
fails and is repeated instead of undoing what happened since.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

from stromboli.api import kinds
from stromboli.api.batch import CronJob
from stromboli.api.modelling import InvalidObject
from stromboli.controllers.cronjob import children, zones
from stromboli.controllers.cronjob.accounting import Account, Note, Record, account
from stromboli.controllers.cronjob.children import Child, rfc3339
from stromboli.controllers.cronjob.deciding import Unusable, decide, timetable
from stromboli.controllers.cronjob.executing import Executor
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.reporting import Events, Stored
from stromboli.kube import json
from stromboli.kube.applying import patch_changes
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Observer, Result, Terminal
from stromboli.kube.errors import NotFound
from stromboli.kube.events import EventType
from stromboli.kube.informers import wait_all_synced
from stromboli.kube.json import JsonObject
from stromboli.kube.stores import Key

log = logging.getLogger(__name__)

NAME = "cronjob-controller"
SYNC_TIMEOUT = 600.0
BY_CRON_JOB = "cron-job-uid"
LONGEST_WAIT = 600.0
"""Seconds after which a CronJob is looked at again in any case: the wall clock may be moved, or the machine may sleep,
and a timer notices neither."""


class CronJobController:
    """Reconciles CronJobs. Make it, then :meth:`run` it beside ``informers.run()``.

    ``zone`` is that of CronJobs without one of their own; by default the process's. ``note_times`` puts the start's
    time on its job (gate CronVolcanoJobSupport).
    """

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        events: Events,
        *,
        workers: int = 3,
        note_times: bool = True,
        zone: tzinfo | None = None,
        longest_wait: float = LONGEST_WAIT,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client, self._events, self._clock = client, events, clock
        self._note_times, self._zone = note_times, zone or zones.local()
        self._longest_wait = longest_wait
        self._cron_jobs = informers.plain(kinds.CRON_JOBS)
        self._jobs = informers.plain(kinds.JOBS)
        self._jobs.store.add_index(BY_CRON_JOB, lambda job: tuple(filter(None, (children.cron_job_uid(job),))))
        # By key, with the CronJob's UID: the last start that was made, and when a new schedule was seen.
        self._started: dict[Key, tuple[str, float]] = {}
        self._since: dict[Key, tuple[str, float]] = {}
        self._controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            workers=workers,
            objects=Stored(kinds.CRON_JOBS, self._cron_jobs.store, events),
            observer=observer,
            clock=clock,
        )
        self._cron_jobs.add_handler(on_add=self._seen, on_update=self._changed, on_delete=self._gone)
        self._jobs.add_handler(on_add=self._job_seen, on_update=self._job_changed, on_delete=self._job_seen)

    async def run(self) -> None:
        """Work until cancelled, once the caches are filled."""
        await wait_all_synced(self._cron_jobs, self._jobs, timeout=SYNC_TIMEOUT)
        await self._controller.run()

    # -- from changes to keys ----------------------------------------------------------------------------------------

    def _seen(self, cron_job: JsonObject) -> None:
        self._controller.enqueue(json.key_of(cron_job))

    def _gone(self, cron_job: JsonObject) -> None:
        for memory in (self._started, self._since):
            memory.pop(json.key_of(cron_job), None)

    def _changed(self, old: JsonObject, new: JsonObject) -> None:
        before, after = (one.get("spec") or {} for one in (old, new))
        if all(before.get(field) == after.get(field) for field in ("schedule", "timeZone")):
            self._seen(new)
            return
        self._rescheduled(new)

    def _rescheduled(self, raw: JsonObject) -> None:
        """A new schedule holds from now on: starts that it would have had before are not made up for."""
        try:
            cron_job = CronJob.from_wire(raw)
            timetable(cron_job, self._zone)
        except InvalidObject:
            self._seen(raw)
            return
        except Unusable:
            schedule = (raw.get("spec") or {}).get("schedule")
            text = f"unparseable schedule for cronjob: {schedule}"
            note = Note(EventType.WARNING, "UnParseableCronJobSchedule", text)
            Executor(self._client, self._events, CronJob.from_wire(raw)).tell(note)
            return
        self._since[cron_job.key] = (cron_job.uid, self._clock.time())
        self._seen(raw)

    def _job_seen(self, job: JsonObject) -> None:
        owner = children.controller_of(job) or {}
        if (owner.get("apiVersion"), owner.get("kind")) != (kinds.CRON_JOBS.api_version, kinds.CRON_JOBS.kind):
            return
        key = (json.key_of(job)[0], str(owner.get("name") or ""))
        cron_job = self._cron_jobs.store.get(key)
        if cron_job is not None and json.uid_of(cron_job) == owner.get("uid"):
            self._controller.enqueue(key)

    def _job_changed(self, old: JsonObject, new: JsonObject) -> None:
        if children.cron_job_uid(old) != children.cron_job_uid(new):
            self._job_seen(old)
        self._job_seen(new)

    # -- from a key to writes ----------------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> Result | None:
        """One pass over one CronJob. Raises to be called again."""
        raw = self._cron_jobs.store.get(key)
        if raw is None or json.metadata(raw).get("deletionTimestamp") is not None:
            return None
        stock = await self._take_stock(raw)
        if stock.orphans:
            fresh = await self._read(key, json.uid_of(raw))
            if fresh is None:
                return None
            raw = fresh
            stock = await self._take_stock(raw)
        cron_job = _model(raw)
        acting = Executor(self._client, self._events, cron_job)
        acting.tell(*stock.notes, *await self._orphans_told(stock.orphans, cron_job))
        for child in stock.outdated:
            await acting.delete(child.name, child.uid)
        try:
            seconds = await self._start(raw, cron_job, stock.record, acting)
        finally:
            await self._write(raw, stock.record)
        return None if seconds is None else Result(requeue_after=min(seconds, self._longest_wait))

    async def _take_stock(self, raw: JsonObject) -> Account:
        cron_job = _model(raw)
        own = [Child.of(job) for job in self._jobs.store.by_index(BY_CRON_JOB, cron_job.uid)]
        return account(cron_job, own, await self._others(cron_job, own), now=self._clock.time())

    async def _others(self, cron_job: CronJob, own: Sequence[Child]) -> Mapping[str, Child | None]:
        """What is behind active references to jobs that the cache does not have (yet)."""
        known = {child.uid for child in own}
        missing = [one.name for one in cron_job.status.active if one.uid not in known]
        return {name: await self._job(cron_job.namespace, name) for name in missing}

    async def _job(self, namespace: str, name: str) -> Child | None:
        try:
            return Child.of(await self._client.get(kinds.JOBS, name, namespace))
        except NotFound:
            return None

    async def _read(self, key: Key, uid: str) -> JsonObject | None:
        try:
            fresh = await self._client.get(kinds.CRON_JOBS, key[1], key[0])
        except NotFound:
            return None
        return fresh if json.uid_of(fresh) == uid else None

    async def _orphans_told(self, orphans: Sequence[Child], cron_job: CronJob) -> list[Note]:
        """Warnings about running jobs that are on no record, unless they are going away."""
        notes = []
        for orphan in orphans:
            present = await self._job(cron_job.namespace, orphan.name)
            if present is not None and present.uid == orphan.uid and not present.deleting:
                text = f"Detected orphaned job forgotten or not managed by controller: {orphan.name}"
                notes.append(Note(EventType.WARNING, "OrphanedJob", f"{text} (UID: {orphan.uid})"))
        return notes

    async def _start(self, raw: JsonObject, cron_job: CronJob, record: Record, acting: Executor) -> float | None:
        """Start the job that is due, if one is; answers the seconds until the next pass."""
        if cron_job.spec.suspend:
            return None
        try:
            table, notes = timetable(cron_job, self._zone)
            acting.tell(*notes)
            started, since = (_remembered(memory, cron_job) for memory in (self._started, self._since))
            decision = decide(cron_job, record, table, last_started=started, since=since, now=self._clock.time())
        except Unusable as error:
            if error.note is not None:
                acting.tell(error.note)
            raise Terminal(str(error)) from error
        acting.tell(*decision.notes)
        if decision.start is not None:
            if decision.replace:
                await acting.end_active(record)
            await self._create(raw, cron_job, decision.start, record, acting)
        return decision.wait

    async def _create(self, raw: JsonObject, cron_job: CronJob, start: int, record: Record, acting: Executor) -> None:
        template = (raw.get("spec") or {}).get("jobTemplate") or {}
        child = await acting.create(template, start, note_time=self._note_times)
        if child is None:
            return
        self._started[cron_job.key] = (cron_job.uid, start)
        record.add(cron_job.namespace, child)
        record.last_schedule_time = rfc3339(start)

    async def _write(self, raw: JsonObject, record: Record) -> None:
        if record == Record.of(_model(raw)):
            return
        own = ("active", "lastScheduleTime", "lastSuccessfulTime")
        foreign = {key: value for key, value in (raw.get("status") or {}).items() if key not in own}
        wanted: dict[str, Any] = {**raw, "status": {**foreign, **record.to_wire()}}
        try:
            await patch_changes(self._client, kinds.CRON_JOBS, raw, wanted, subresource="status", lock=True)
        except NotFound:
            pass  # deleted meanwhile


def _remembered(memory: Mapping[Key, tuple[str, float]], cron_job: CronJob) -> float:
    uid, moment = memory.get(cron_job.key, ("", 0.0))
    return moment if uid == cron_job.uid else 0.0


def _model(raw: JsonObject) -> CronJob:
    try:
        return CronJob.from_wire(raw)
    except InvalidObject as error:
        raise Terminal(str(error)) from error
