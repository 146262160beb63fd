"""The controller of JobFlows: observes jobs, templates and pods, and carries out what :mod:`.planning` says.

A flow is looked at again when it, one of its jobs or one of its templates changes; while a step waits for an HTTP or
TCP probe, also every few seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from stromboli.api import core, kinds, names
from stromboli.api.batch import Job
from stromboli.api.core import Pod
from stromboli.api.flow import JobFlow
from stromboli.api.modelling import InvalidObject
from stromboli.api.phases import JobFlowPhase
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.jobflow import conditions
from stromboli.controllers.jobflow.building import build
from stromboli.controllers.jobflow.planning import Plan, is_over, plan
from stromboli.controllers.jobflow.probing import Prober
from stromboli.controllers.jobflow.view import View
from stromboli.controllers.reporting import Events, Stored
from stromboli.kube import json
from stromboli.kube.applying import delete_if_present, patch_changes
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.controlling import Controller, Result, Terminal
from stromboli.kube.controlling import Observer as WorkObserver
from stromboli.kube.errors import AlreadyExists, NotFound
from stromboli.kube.events import EventType, Reference
from stromboli.kube.informers import wait_all_synced
from stromboli.kube.json import JsonObject
from stromboli.kube.stores import Key

log = logging.getLogger(__name__)

NAME = "jobflow-controller"
SYNC_TIMEOUT = 600.0
PROBE_INTERVAL = 5.0
WORKERS = 5
"""Flows worked on at a time: a pass may wait seconds for pods that do not answer, and others must not wait with it."""
BY_FLOW = "job-flow-uid"
BY_STEP = "flow-step"
BY_JOB = "flow-job"
BY_OWNER = "pod-job-uid"


class Numbers(Protocol):
    """Where the numbers of flows go."""

    def flow_ended(self, namespace: str, phase: str) -> None:
        """A flow has succeeded, or failed before it ran."""
        ...


class JobFlowController:
    """Reconciles JobFlows. Make it, then :meth:`run` it beside ``informers.run()``."""

    def __init__(
        self,
        client: Client,
        informers: SharedInformers,
        events: Events,
        numbers: Numbers,
        *,
        workers: int = WORKERS,
        max_requeue: int = 15,
        prober: Prober | None = None,
        probe_interval: float = PROBE_INTERVAL,
        observer: WorkObserver | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client, self._events, self._numbers, self._clock = client, events, numbers, clock
        self._prober, self._probe_interval = prober or Prober(), probe_interval
        self._flows, self._jobs = informers.plain(kinds.JOB_FLOWS), informers.plain(kinds.JOBS)
        self._templates, self._pods = informers.plain(kinds.JOB_TEMPLATES), informers.pods
        self._flows.store.add_index(BY_STEP, _templates)
        self._flows.store.add_index(BY_JOB, _job_names)
        self._jobs.store.add_index(BY_FLOW, _flow_uids)
        self._pods.store.add_index(BY_OWNER, _owner_uids)
        self._controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            workers=workers,
            max_retries=None if max_requeue < 0 else max_requeue,
            give_up=self._give_up,
            objects=Stored(kinds.JOB_FLOWS, self._flows.store, events),
            observer=observer,
            clock=clock,
        )
        self._listen()

    async def run(self) -> None:
        """Work until cancelled, once the caches are filled."""
        await wait_all_synced(self._flows, self._jobs, self._templates, self._pods, timeout=SYNC_TIMEOUT)
        await self._controller.run()

    # -- from changes to keys ----------------------------------------------------------------------------------------

    def _listen(self) -> None:
        self._flows.add_handler(on_add=self._seen, on_update=self._changed)
        self._jobs.add_handler(on_add=self._job_seen, on_update=self._job_changed, on_delete=self._job_seen)
        self._templates.add_handler(on_add=self._template_seen)

    def _seen(self, flow: JsonObject) -> None:
        self._controller.enqueue(json.key_of(flow))

    def _changed(self, old: JsonObject, new: JsonObject) -> None:
        succeeded = _phase(old) != _phase(new) == JobFlowPhase.SUCCEED
        if old.get("spec") != new.get("spec") or succeeded:  # other changes of the status are our own
            self._seen(new)

    def _job_seen(self, job: JsonObject) -> None:
        """Wake the flow that owns the job, and flows with a step that would make a job of that name."""
        namespace = json.key_of(job)[0]
        owner = _owning_flow(job)
        if owner is not None:
            self._controller.enqueue((namespace, str(owner.get("name") or "")))
        for flow in self._flows.store.by_index(BY_JOB, "/".join(json.key_of(job))):
            self._seen(flow)

    def _job_changed(self, old: JsonObject, new: JsonObject) -> None:
        if old.get("status") != new.get("status") or _owning_flow(old) != _owning_flow(new):
            self._job_seen(new)

    def _template_seen(self, template: JsonObject) -> None:
        for flow in self._flows.store.by_index(BY_STEP, "/".join(json.key_of(template))):
            self._seen(flow)

    # -- from a key to writes ----------------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> Result | None:
        """One pass over one flow. Raises to be called again."""
        raw = self._flows.store.get(key)
        if raw is None or json.metadata(raw).get("deletionTimestamp") is not None:
            return None
        view = self._observe(raw)
        if is_over(view):
            return None
        answers = await self._prober.answers(list(conditions.questions(view)), self._pods_of(view))
        try:
            found = plan(view, answers, now=self._clock.time())
        except ValueError as error:
            raise Terminal(f"status.state.phase: {error}") from error
        await self._execute(raw, view, found)
        return Result(requeue_after=self._probe_interval) if found.ask_again else None

    def _observe(self, raw: JsonObject) -> View:
        flow = _flow(raw)
        own = [_job(job) for job in self._jobs.store.by_index(BY_FLOW, flow.uid)]
        view = View(flow, {job.name: job for job in own})
        expected = {view.job_name(step) for step in view.steps} - set(view.jobs)
        stored = {step: self._templates.store.get((flow.namespace, step)) for step in view.steps}
        return View(
            flow,
            view.jobs,
            {step: template for step, template in stored.items() if template is not None},
            frozenset(name for name in expected if (flow.namespace, name) in self._jobs.store),
        )

    def _pods_of(self, view: View) -> Mapping[str, Sequence[Pod]]:
        return {name: self._pods.store.by_index(BY_OWNER, job.uid) for name, job in view.jobs.items()}

    async def _execute(self, raw: JsonObject, view: View, found: Plan) -> None:
        flow = view.flow
        for name in found.delete:
            await delete_if_present(
                self._client, kinds.JOBS, name, flow.namespace, uid=view.jobs[name].uid, propagation="Background"
            )
        if found.status is not None:
            await self._write_status(raw, flow, found.status)
        for step in found.create:
            await self._create(raw, view, step)
        for step in found.without_template:
            text = f"step {step} waits: there is no JobTemplate {flow.namespace}/{step}; it starts when there is"
            self._tell(raw, EventType.WARNING, "JobTemplateNotFound", text)
        for name in found.in_the_way:
            text = f"step of job {name} waits: there is a job of that name which is not of this JobFlow; delete it"
            self._tell(raw, EventType.WARNING, "ForeignJob", text)

    async def _write_status(self, raw: JsonObject, flow: JobFlow, status: JsonObject) -> None:
        present = raw.get("status") or {}
        wanted = {
            **raw,
            "status": {**present, **{key: value for key, value in status.items() if value or key in present}},
        }
        try:
            await patch_changes(self._client, kinds.JOB_FLOWS, raw, wanted, subresource="status", lock=True)
        except NotFound:
            return  # deleted meanwhile
        before, after = flow.status.state.phase, str(status["state"]["phase"])
        failed_early = after == JobFlowPhase.FAILED and before in ("", JobFlowPhase.PENDING)
        if before != after and (after == JobFlowPhase.SUCCEED or failed_early):
            self._numbers.flow_ended(flow.namespace, after)

    async def _create(self, raw: JsonObject, view: View, step: str) -> None:
        job = build(view.flow, step, view.templates[step], _patch(raw, step))
        try:
            await self._client.create(kinds.JOBS, job)
        except AlreadyExists:
            return  # the cache is behind
        self._tell(raw, EventType.NORMAL, "Created", f"create a job named {job['metadata']['name']}!")

    async def _give_up(self, key: Key, error: Exception) -> None:
        raw = self._flows.store.get(key)
        if raw is not None:
            self._tell(raw, EventType.WARNING, "SyncJobFlow", f"SyncJobFlow JobFlow failed for {error}")

    def _tell(self, raw: JsonObject, type: EventType, reason: str, text: str) -> None:
        self._events.event(Reference.to_object(kinds.JOB_FLOWS, raw), type, reason, text)


# -- reading plain objects ---------------------------------------------------------------------------------------------


def _flow(raw: JsonObject) -> JobFlow:
    try:
        return JobFlow.from_wire(raw)
    except InvalidObject as error:
        raise Terminal(str(error)) from error


def _job(raw: JsonObject) -> Job:
    """A job, as much of it as makes sense: one whose spec is broken still has a phase."""
    try:
        return Job.from_wire(raw)
    except InvalidObject:
        return Job.from_wire({"metadata": raw["metadata"], "status": {"state": {"phase": _phase(raw)}}})


def _phase(raw: Mapping[str, Any]) -> str:
    return str(((raw.get("status") or {}).get("state") or {}).get("phase") or "")


def _patch(raw: JsonObject, step: str) -> JsonObject | None:
    flows = (raw.get("spec") or {}).get("flows") or []
    found = [one for one in flows if one.get("name") == step]
    return ((found[-1].get("patch") or {}).get("jobSpec") or None) if found else None


def _owning_flow(job: Mapping[str, Any]) -> Mapping[str, Any] | None:
    owners = json.metadata(job).get("ownerReferences") or ()
    owner: Mapping[str, Any] = next((one for one in owners if one.get("controller")), {})
    ours = (owner.get("apiVersion"), owner.get("kind")) == (kinds.JOB_FLOWS.api_version, kinds.JOB_FLOWS.kind)
    return owner if ours else None


def _flow_uids(job: JsonObject) -> tuple[str, ...]:
    owner = _owning_flow(job)
    return () if owner is None else (str(owner.get("uid") or ""),)


def _steps(flow: JsonObject) -> list[str]:
    return [str(one.get("name")) for one in (flow.get("spec") or {}).get("flows") or ()]


def _templates(flow: JsonObject) -> tuple[str, ...]:
    namespace, _ = json.key_of(flow)
    return tuple(f"{namespace}/{step}" for step in _steps(flow))


def _job_names(flow: JsonObject) -> tuple[str, ...]:
    namespace, name = json.key_of(flow)
    return tuple(f"{namespace}/{names.job_flow_child_name(name, step)}" for step in _steps(flow))


def _owner_uids(pod: core.Pod) -> tuple[str, ...]:
    return () if pod.controller is None else (pod.controller.uid,)
