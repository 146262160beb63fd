"""Commands for jobs: each is deleted first and then carried out, so that none is ever carried out twice.

A Command that is lost between the two is lost (at most once is the contract, spec 02 section 6). So everything that can
be waited for is waited for before: an answer about the job, and the watch that shows it. A Command whose target UID is
not that of the live job was meant for an earlier job and is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from stromboli.api import kinds
from stromboli.api.phases import JobEvent
from stromboli.controllers.job.policies import Occurrence
from stromboli.controllers.reporting import Events
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.controlling import Result
from stromboli.kube.errors import NotFound
from stromboli.kube.events import EventType, Reference
from stromboli.kube.json import JsonObject
from stromboli.kube.stores import Key, Store

log = logging.getLogger(__name__)


UNSEEN_SECONDS = 0.2
"""How soon a Command is looked at again whose job the watch of jobs has not shown yet."""


class JobCommands:
    """Consumes Commands that target Jobs; ``jobs`` are those that a pass would find."""

    def __init__(
        self,
        client: Client,
        commands: Store[JsonObject],
        jobs: Store[JsonObject],
        report: Callable[[Key, Occurrence], None],
        events: Events,
    ) -> None:
        self._client = client
        self._commands = commands
        self._jobs = jobs
        self._report = report
        self._events = events

    async def reconcile(self, key: Key) -> Result | None:
        """Consume the Command of that key, if it is still there."""
        command = self._commands.get(key)
        if command is None:
            return None
        namespace, name = key
        job = await self._target(namespace, command)
        if job is not None and not self._seen(job):
            return Result(requeue_after=UNSEEN_SECONDS)
        try:
            await self._client.delete(kinds.COMMANDS, name, namespace, uid=json.uid_of(command))
        except NotFound:
            return None  # somebody else has consumed it
        if job is not None:
            self._carry_out(job, str(command.get("action") or ""))
        return None

    async def _target(self, namespace: str, command: JsonObject) -> JsonObject | None:
        aimed = command["target"]
        try:
            job = await self._client.get(kinds.JOBS, str(aimed["name"]), namespace)
        except NotFound:
            return None
        if aimed.get("uid") and aimed["uid"] != json.uid_of(job):
            action = command.get("action")
            log.info("command %s for job %s/%s is for an earlier job of that name", action, namespace, aimed["name"])
            return None
        return job

    def _seen(self, job: JsonObject) -> bool:
        known = self._jobs.identity(json.key_of(job))
        return known is not None and known.uid == json.uid_of(job)

    def _carry_out(self, job: JsonObject, action: str) -> None:
        text = f"Start to execute command {action}, and clean it up to make sure executed not more than once."
        self._events.event(Reference.to_object(kinds.JOBS, job), EventType.NORMAL, "CommandIssued", text)
        occurrence = Occurrence(event=JobEvent.COMMAND_ISSUED, job_uid=json.uid_of(job), action=action)
        self._report(json.key_of(job), occurrence)


def is_for_jobs(command: JsonObject) -> bool:
    """Whether a Command targets a Job."""
    aimed = command.get("target")
    return (
        isinstance(aimed, dict)
        and (aimed.get("apiVersion"), aimed.get("kind")) == (kinds.JOBS.api_version, kinds.JOBS.kind)
        and bool(aimed.get("name"))
    )
