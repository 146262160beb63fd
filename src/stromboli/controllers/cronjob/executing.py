"""What a pass over a CronJob does to jobs: end old ones, make new ones, and tell the owner about it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import Any

from stromboli.api import kinds
from stromboli.api.batch import CronJob
from stromboli.controllers.cronjob import children, zones
from stromboli.controllers.cronjob.accounting import Note, Record
from stromboli.controllers.cronjob.children import Child
from stromboli.controllers.reporting import Events
from stromboli.kube.applying import delete_if_present
from stromboli.kube.client import Client
from stromboli.kube.errors import AlreadyExists, ApiError, KubeError, NotFound
from stromboli.kube.events import EventType, Reference

_TERMINATING = "NamespaceTerminating"


class NotReplaced(Exception):
    """An active job could not be ended, so its successor is not started."""


class Uncontrolled(Exception):
    """The server stored a job without its owner; it was deleted again."""


class Executor:
    """Acts for one CronJob."""

    def __init__(self, client: Client, events: Events, cron_job: CronJob) -> None:
        self._client, self._events, self._cron_job = client, events, cron_job

    def tell(self, *notes: Note) -> None:
        """Record Events about the CronJob."""
        about = self._cron_job
        regarding = Reference.to(kinds.CRON_JOBS, about.namespace, about.name, about.uid)
        for note in notes:
            self._events.event(regarding, note.type, note.reason, note.message)

    async def delete(self, name: str, uid: str) -> bool:
        """Delete a job. A failure is told, and answered with False."""
        try:
            gone_now = await delete_if_present(
                self._client, kinds.JOBS, name, self._cron_job.namespace, uid=uid, propagation="Background"
            )
        except KubeError as error:
            self.tell(Note(EventType.WARNING, "FailedDelete", f'Error deleting job "{name}": {error}'))
            return False
        if gone_now:
            self.tell(Note(EventType.NORMAL, "SuccessfulDelete", f'Deleted job "{name}"'))
        return True

    async def end_active(self, record: Record) -> None:
        """End every active job. One that is gone already is ended.

        Raises:
            NotReplaced: one could not be deleted.
            KubeError: one could not be read.
        """
        for reference in list(record.active):
            namespace = self._cron_job.namespace
            try:
                await self._client.get(kinds.JOBS, reference.name, namespace)
            except NotFound:
                record.drop(reference.uid)
                continue
            except KubeError as error:
                self.tell(Note(EventType.WARNING, "FailedGet", f"Get job: {error}"))
                raise
            if not await self.delete(reference.name, reference.uid):
                raise NotReplaced(f"could not replace job {namespace}/{reference.name}")
            record.drop(reference.uid)

    async def create(self, template: Mapping[str, Any], start: int, *, note_time: bool) -> Child | None:
        """Make the job of a start; None when there was nothing to make. One that was made before is taken over.

        Raises:
            Uncontrolled: the job came back without its owner.
            KubeError: the server refused.
        """
        cron_job = self._cron_job
        wanted = children.build(cron_job, template, start, self._noted_zone() if note_time else None)
        name = wanted["metadata"]["name"]
        try:
            made = await self._client.create(kinds.JOBS, wanted)
        except AlreadyExists:
            return await self._take_over(name)
        except ApiError as error:
            self.tell(_refusal(cron_job, error))
            raise
        if children.cron_job_uid(made) != cron_job.uid:
            await self.delete(name, Child.of(made).uid)
            raise Uncontrolled(f"job {cron_job.namespace}/{name} was stored without a controlling owner")
        text = f"Created job {name} for CronJob {cron_job.namespace}/{cron_job.name}"
        self.tell(Note(EventType.NORMAL, "SuccessfulCreate", text))
        return Child.of(made)

    def _noted_zone(self) -> tzinfo:
        name = self._cron_job.spec.time_zone
        return UTC if name is None else zones.load(name)

    async def _take_over(self, name: str) -> Child | None:
        found = await self._client.get(kinds.JOBS, name, self._cron_job.namespace)
        if children.cron_job_uid(found) != self._cron_job.uid:
            owner = children.controller_of(found)
            named = f"{owner.get('kind')} {owner.get('name')}" if owner else "none"
            text = f"Job {name} exists but is not owned by this CronJob (current owner: {named})"
            self.tell(Note(EventType.WARNING, "ForeignJob", text))
            return None
        child = Child.of(found)
        return None if child.finished else child


def _refusal(cron_job: CronJob, error: ApiError) -> Note:
    if any(cause.get("reason") == _TERMINATING for cause in error.causes):
        text = f"Namespace {cron_job.namespace} is terminating, skipping job creation"
        return Note(EventType.WARNING, _TERMINATING, text)
    return Note(EventType.WARNING, "FailedCreate", f"Failed to create job: {error}")
