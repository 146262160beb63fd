"""The job controller: from a key to one pass over a job.

What asks for a pass is told by :mod:`.listening`. The pass is three steps: observe (:mod:`.observing`), plan
(:mod:`.planning`), execute (:mod:`.executing`). What is here is the wiring, and what happens when a pass fails: the
owner is told, what was about to be done is remembered, and a job that cannot be brought forward by its own fault is
terminated after ``max_requeue`` attempts (spec 02 section 5.4). Faults of the cluster (no answer, conflicts, quotas)
are retried for as long as it takes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stromboli.api import kinds
from stromboli.api.batch import Job
from stromboli.api.phases import JobAction
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.job import pacing, status
from stromboli.controllers.job.attention import Attention
from stromboli.controllers.job.commands import JobCommands, is_for_jobs
from stromboli.controllers.job.contradictions import INVALID_JOB
from stromboli.controllers.job.deciding import Decision, TimerKey, decide
from stromboli.controllers.job.doubts import Doubts
from stromboli.controllers.job.executing import Executor
from stromboli.controllers.job.executing import Observer as Numbers
from stromboli.controllers.job.inbox import Inbox
from stromboli.controllers.job.ledger import Ledger
from stromboli.controllers.job.listening import Listener, queue_of
from stromboli.controllers.job.observed import Observed
from stromboli.controllers.job.observing import Observer
from stromboli.controllers.job.planning import operations_for
from stromboli.controllers.job.policies import Occurrence
from stromboli.controllers.job.reading import Reader
from stromboli.controllers.job.refusals import CreationFailed, Refused, RemovalFailed, Unrecoverable
from stromboli.controllers.reporting import Events
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Result, Terminal
from stromboli.kube.controlling import Observer as WorkObserver
from stromboli.kube.errors import ApiError, Conflict, KubeError, NotFound, ServerError, TooManyRequests
from stromboli.kube.events import EventType, Reference
from stromboli.kube.informers import Informer, wait_all_synced
from stromboli.kube.json import JsonObject
from stromboli.kube.stores import Key

log = logging.getLogger(__name__)

NAME = "job-controller"
LONGEST_STRETCH = 10.0
"""Seconds after which passes that lead from phase to phase are interrupted, so that others get their turn."""
SYNC_TIMEOUT = 600.0
"""Seconds to wait for the first listings; longer means that a CRD is missing or the server is gone."""


class JobController:
    """Reconciles Jobs. Make it, then :meth:`run` it beside ``informers.run()``."""

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        events: Events,
        numbers: Numbers,
        *,
        workers: int = 3,
        max_requeue: int = 15,
        consume_commands: bool = True,
        priority_classes: bool = True,
        counters_wait: float = pacing.LONGEST_WAIT,
        observer: WorkObserver | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client, self._events, self._clock = client, events, clock
        self._max_requeue, self._numbers = max_requeue, numbers
        self._ledger, self._inbox, self._reader = Ledger(), Inbox(), Reader()
        self._timers: dict[str, Mapping[TimerKey, float]] = {}
        self._failures: dict[str, int] = {}
        self._jobs = informers.plain(kinds.JOBS)
        self._observer = Observer(informers, priority_classes=priority_classes)
        self._executor = Executor(client, self._ledger, events, numbers, clock, counters_wait=counters_wait)
        self._controller: Controller[Key] = Controller(
            NAME, self.reconcile, workers=workers, observer=observer, clock=clock
        )
        self._doubts = Doubts(self._ledger, self._controller.queue, clock)
        self._commands = self._command_controller(informers) if consume_commands else None
        self._attention = Attention(informers, clock)
        Listener(informers, self._controller.queue, self._ledger, self._inbox, self._attention, self._forget)
        self._needed: list[Informer[Any]] = [
            self._jobs,
            informers.pods,
            informers.pod_groups,
            informers.queues,
            informers.claims,
            *([informers.priority_classes] if priority_classes else []),
        ]

    async def run(self) -> None:
        """Work until cancelled, once all caches are filled."""
        await wait_all_synced(*self._needed, timeout=SYNC_TIMEOUT)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._controller.run(), name=NAME)
            if self._commands is not None:
                tasks.create_task(self._commands.run(), name=f"{NAME}-commands")

    @property
    def synced(self) -> bool:
        """Whether all caches are filled."""
        return all(informer.synced for informer in self._needed)

    # -- what else asks for a pass -----------------------------------------------------------------------------------

    def _command_controller(self, informers: SharedInformers) -> Controller[Key]:
        commands = informers.plain(kinds.COMMANDS)
        consumer = JobCommands(self._client, commands.store, self._jobs.store, self.report, self._events)
        controller: Controller[Key] = Controller(f"{NAME}-commands", consumer.reconcile, clock=self._clock)
        commands.add_handler(on_add=lambda one: controller.enqueue(json.key_of(one)) if is_for_jobs(one) else None)
        return controller

    def report(self, key: Key, occurrence: Occurrence) -> None:
        """Have an occurrence taken into account in the next pass over the job of that key."""
        self._inbox.report(key, occurrence)
        self._controller.enqueue(key)

    def _forget(self, job: JsonObject) -> None:
        uid = json.uid_of(job)
        self._timers.pop(uid, None)
        self._failures.pop(uid, None)
        self._reader.forget(uid)
        self._numbers.job_gone(*json.key_of(job), queue_of(job)[0])

    # -- from a key to one pass --------------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> Result | None:
        """Passes over the job of that key until one leaves its phase alone. Raises to be called again after a back-off.

        A new phase may ask for more at once: what the watch will show of it is what has just been written.
        """
        end = self._clock.monotonic() + LONGEST_STRETCH
        while True:
            cached = self._jobs.store.get(key)
            if cached is None:
                self._inbox.forget(key)  # pods that go after their job are evicted from nothing
                return None
            result, moved = await self._pass(key, self._ledger.freshest(cached))
            if not moved:
                return result
            if self._clock.monotonic() >= end:
                return Result(requeue_after=0.0)

    async def _pass(self, key: Key, raw: JsonObject) -> tuple[Result | None, bool]:
        """One pass; the second answer is whether the job has entered a phase that nobody has acted upon yet."""
        job = await self._decoded(raw)
        view, decision = self._observe(key, job), None
        try:
            decision = decide(view, self._clock.time())
            self._timers[job.uid] = decision.timers
            done = await self._executor.perform(raw, job, operations_for(view, decision, self._clock.time()))
        except Exception as error:
            self._remember(key, view, decision)
            return await self._failed(key, raw, decision or Decision(), error), False
        finally:
            self._doubts.begin(key, job.uid)
        self._failures.pop(job.uid, None)
        self._inbox.settle(key, [*view.reported, *([decision.cause] if decision.cause else [])], decision.remembered)
        return self._again(decision, done.again_in), done.moved

    def _remember(self, key: Key, view: Observed, decision: Decision | None) -> None:
        """A pass has failed: what it was about to act on stays due."""
        if decision is None:
            return
        self._timers[view.job.uid] = {**view.timers, **decision.timers}
        if decision.cause is not None:
            self._inbox.report(key, decision.cause)

    def _again(self, decision: Decision, again_in: float | None) -> Result | None:
        waits = [] if again_in is None else [again_in]
        if decision.again_at is not None:
            waits.append(max(0.0, decision.again_at - self._clock.time()))
        return Result(requeue_after=min(waits)) if waits else None

    def _observe(self, key: Key, job: Job) -> Observed:
        uid = job.uid
        view = self._observer.observe(job, self._ledger.of(uid), self._clock.monotonic())
        reported, timers = self._inbox.waiting(key), self._timers.get(uid, {})
        return replace(view, reported=reported, timers=timers, attention=self._attention.seen)

    async def _decoded(self, raw: JsonObject) -> Job:
        """The job as a model. One that cannot be read is set aside with an Event and a reason in its status."""
        try:
            return self._reader.read(raw)
        except ValueError as error:
            message = " ".join(str(error).split())[: status.LONGEST_MESSAGE]
            self._warn(raw, INVALID_JOB, f"the job cannot be read: {message}")
            await self._set_aside(raw, message)
            raise Terminal(f"the job cannot be read: {message}") from error

    async def _set_aside(self, raw: JsonObject, message: str) -> None:
        namespace, name = json.key_of(raw)
        patch = {
            "metadata": {"uid": json.uid_of(raw)},
            "status": {"state": {"reason": INVALID_JOB, "message": message}},
        }
        try:
            await self._client.patch(kinds.JOBS, name, patch, namespace, subresource="status")
        except KubeError as error:
            log.warning("job %s/%s: could not be marked as invalid: %s", namespace, name, error)

    # -- failures ----------------------------------------------------------------------------------------------------

    async def _failed(self, key: Key, raw: JsonObject, decision: Decision, error: Exception) -> Result | None:
        self._tell(raw, error)
        job = self._reader.read(self._ledger.freshest(raw))  # the pass may have come as far as to write a status
        if isinstance(error, CreationFailed):
            await self._note(job, status.creation_failed(job, error.quoted, self._clock.time()))
        elif isinstance(error, Refused):
            await self._note(job, status.refused(job, error.reason, error.message))
        if not _own_fault(error):
            raise error
        uid = job.uid
        self._failures[uid] = self._failures.get(uid, 0) + 1
        exhausted = 0 <= self._max_requeue < self._failures[uid]
        if not exhausted and not isinstance(error, Unrecoverable):
            raise error
        return self._terminate(key, raw, uid, decision, error)

    def _terminate(self, key: Key, raw: JsonObject, uid: str, decision: Decision, error: Exception) -> Result:
        cause = f"{error}: {error.quoted}" if isinstance(error, CreationFailed | RemovalFailed) else str(error)
        log.error("job %s/%s is terminated: %s", *key, cause)
        self._failures.pop(uid, None)
        text = f"Job failed on action {decision.spelled} for retry limit reached"
        self._events.event(Reference.to_object(kinds.JOBS, raw), EventType.NORMAL, "ExecuteAction", text)
        last = Occurrence(event="", job_uid=uid, action=JobAction.TERMINATE_JOB, message=cause)
        self._inbox.report(key, last)
        return Result(requeue_after=0.0)

    def _tell(self, raw: JsonObject, error: Exception) -> None:
        match error:
            case Refused():
                self._warn(raw, error.reason, error.message)
            case CreationFailed():
                self._warn(raw, "FailedCreate", f"Error creating pods: {error.quoted}")
            case RemovalFailed():
                self._warn(raw, "FailedDelete", f"Error deleting pods: {error.quoted}")
            case KubeError() | TimeoutError():
                pass  # trouble of the cluster's, not of the job's; the log has it
            case _:
                self._warn(raw, "SyncFailed", f"unexpected error, tried again: {type(error).__name__}: {error}")

    def _warn(self, raw: JsonObject, reason: str, message: str) -> None:
        self._events.event(Reference.to_object(kinds.JOBS, raw), EventType.WARNING, reason, message)

    async def _note(self, job: Job, wanted: JsonObject) -> None:
        """Say in the job's status what it waits for; what cannot be said now is said next time."""
        patch = status.difference(status.recorded(job), wanted)
        if not patch:
            return
        namespace, name = job.namespace, job.name
        body = {"metadata": {"uid": job.uid}, "status": patch}
        try:
            written = await self._client.patch(kinds.JOBS, name, body, namespace, subresource="status")
        except KubeError as failure:
            log.warning("job %s/%s: status could not be written: %s", namespace, name, failure)
            return
        self._ledger.of(job.uid).wrote(written)


def _own_fault(error: Exception) -> bool:
    """Whether trying for long is no use: the job asks for what is wrong or not there, and the cluster works."""
    if isinstance(error, CreationFailed):
        return not error.over_quota and all(map(_own_fault, error.errors))
    if isinstance(error, Conflict | NotFound | TooManyRequests | ServerError):
        return False
    return isinstance(error, ApiError | Refused)
