"""Keeps ``status.jobDependsOnList`` of JobTemplates equal to the jobs that carry the template's label.

The list is kept up to date when jobs go as well, and emptied with the last of them. A label value is
``<namespace>.<template>``; only the first dot separates, because namespaces have none and templates may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stromboli.api import kinds, names
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.reporting import Events
from stromboli.kube import json
from stromboli.kube.applying import patch_changes
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Observer, Result
from stromboli.kube.errors import NotFound
from stromboli.kube.events import EventType, Reference
from stromboli.kube.informers import wait_all_synced
from stromboli.kube.json import JsonObject
from stromboli.kube.stores import Key

NAME = "jobtemplate-controller"
SYNC_TIMEOUT = 600.0
BY_TEMPLATE = "job-template"
REASON = "SyncJobTemplate"


def template_of(job: Mapping[str, Any]) -> Key | None:
    """Namespace and name of the template that a job was made from; None when it was not, or is in no namespace."""
    value = str((json.metadata(job).get("labels") or {}).get(names.CREATED_BY_JOB_TEMPLATE) or "")
    namespace, dot, name = value.partition(".")
    return (namespace, name) if dot and namespace and name else None


def plan(template: Mapping[str, Any], jobs: Iterable[Mapping[str, Any]]) -> list[str] | None:
    """The list to write; None when it says so already."""
    wanted = sorted(json.key_of(job)[1] for job in jobs if json.key_of(job)[0] == json.key_of(template)[0])
    present = (template.get("status") or {}).get("jobDependsOnList") or []
    return None if wanted == present else wanted


class JobTemplateController:
    """Reconciles JobTemplates. Make it, then :meth:`run` it beside ``informers.run()``."""

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        events: Events,
        *,
        max_requeue: int = 15,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client, self._events = client, events
        self._templates, self._jobs = informers.plain(kinds.JOB_TEMPLATES), informers.plain(kinds.JOBS)
        self._jobs.store.add_index(BY_TEMPLATE, _index)
        self._controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            max_retries=None if max_requeue < 0 else max_requeue,
            give_up=self._give_up,
            observer=observer,
            clock=clock,
        )
        self._templates.add_handler(on_add=self._seen)
        self._jobs.add_handler(on_add=self._job_seen, on_update=self._job_changed, on_delete=self._job_seen)

    async def run(self) -> None:
        """Work until cancelled, once the caches are filled."""
        await wait_all_synced(self._templates, self._jobs, timeout=SYNC_TIMEOUT)
        await self._controller.run()

    def _seen(self, template: JsonObject) -> None:
        self._controller.enqueue(json.key_of(template))

    def _job_seen(self, job: JsonObject) -> None:
        key = template_of(job)
        if key is not None:
            self._controller.enqueue(key)

    def _job_changed(self, old: JsonObject, new: JsonObject) -> None:
        if template_of(old) != template_of(new):
            self._job_seen(old)
            self._job_seen(new)

    async def reconcile(self, key: Key) -> Result | None:
        """Write the list of one template if it changed."""
        template = self._templates.store.get(key)
        if template is None:
            return None
        wanted = plan(template, self._jobs.store.by_index(BY_TEMPLATE, names.qualified(*key)))
        if wanted is None:
            return None
        status = {**(template.get("status") or {}), "jobDependsOnList": wanted}
        try:
            await patch_changes(
                self._client, kinds.JOB_TEMPLATES, template, {**template, "status": status}, subresource="status"
            )
        except NotFound:
            pass  # deleted meanwhile
        return None

    async def _give_up(self, key: Key, error: Exception) -> None:
        template = self._templates.store.get(key)
        if template is not None:
            regarding = Reference.to_object(kinds.JOB_TEMPLATES, template)
            self._events.event(regarding, EventType.WARNING, REASON, f"{REASON} JobTemplate failed for {error}")


def _index(job: JsonObject) -> tuple[str, ...]:
    key = template_of(job)
    return () if key is None else (names.qualified(*key),)
