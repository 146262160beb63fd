"""The controller that deletes expired jobs, each after a second look at the live object."""

from __future__ import annotations

import logging

from stromboli.api import kinds
from stromboli.api.batch import Job
from stromboli.api.modelling import InvalidObject
from stromboli.controllers.garbagecollector.expiry import expires_at, is_candidate
from stromboli.controllers.informers import SharedInformers
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Observer, Result, Terminal
from stromboli.kube.errors import NotFound
from stromboli.kube.json import JsonObject
from stromboli.kube.stores import Key

log = logging.getLogger(__name__)

NAME = "gc-controller"
SYNC_TIMEOUT = 600.0


class GarbageCollector:
    """Deletes jobs whose time to live has passed. Make it, then :meth:`run` it beside ``informers.run()``."""

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        *,
        workers: int = 1,
        observer: Observer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client, self._clock = client, clock
        self._jobs = informers.plain(kinds.JOBS)
        self._controller: Controller[Key] = Controller(
            NAME, self.reconcile, workers=workers, observer=observer, clock=clock
        )
        self._jobs.add_handler(on_add=self._seen, on_update=lambda _old, new: self._seen(new))

    async def run(self) -> None:
        """Work until cancelled."""
        await self._jobs.wait_synced(SYNC_TIMEOUT)
        await self._controller.run()

    def _seen(self, job: JsonObject) -> None:
        if (job.get("spec") or {}).get("ttlSecondsAfterFinished") is not None:
            self._controller.enqueue(json.key_of(job))

    async def reconcile(self, key: Key) -> Result | None:
        """Delete the job of that key if it has expired, or come back when it will have."""
        cached = self._jobs.store.get(key)
        if cached is None:
            return None
        wait = self._remaining(_read(cached))
        if wait is None or wait > 0:
            return None if wait is None else Result(requeue_after=wait)
        return await self._collect(key)

    async def _collect(self, key: Key) -> Result | None:
        namespace, name = key
        try:
            job = _read(await self._client.get(kinds.JOBS, name, namespace))
            wait = self._remaining(job)
            if wait is None or wait > 0:
                return None if wait is None else Result(requeue_after=wait)
            log.info("job %s/%s is deleted, its time to live has passed", namespace, name)
            await self._client.delete(kinds.JOBS, name, namespace, uid=job.uid, propagation="Foreground")
        except NotFound:
            pass
        return None

    def _remaining(self, job: Job) -> float | None:
        """Seconds until the job expires; None when it is no candidate."""
        return expires_at(job) - self._clock.time() if is_candidate(job) else None


def _read(raw: JsonObject) -> Job:
    try:
        return Job.from_wire(raw)
    except InvalidObject as error:
        raise Terminal(str(error)) from error
