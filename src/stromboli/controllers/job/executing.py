"""Performing a plan's operations through the API server.

Operations run in order and the first that fails ends the pass, because the later ones assume the earlier ones. Pods are
created and deleted several at a time, and there one failure does not stop the others. Everything is remembered in the
ledger as soon as it is done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from stromboli.api import core, kinds, names
from stromboli.api.batch import Job
from stromboli.api.core import Pod, timestamp
from stromboli.controllers.job import derived, pacing, phases, pods, status
from stromboli.controllers.job.ledger import LONGEST_LAG, Created, JobLedger, Ledger
from stromboli.controllers.job.members import Member, member_of
from stromboli.controllers.job.operations import (
    CreateClaim,
    CreatePodGroup,
    CreatePods,
    DeletePodGroup,
    DropAttachment,
    KeepAttachment,
    LookAgain,
    Operation,
    PatchJob,
    PatchPodGroup,
    RecordEvent,
    RemovePods,
    WriteStatus,
)
from stromboli.controllers.job.plugins import Attachment
from stromboli.controllers.job.refusals import CreationFailed, Refused, RemovalFailed, Unrecoverable
from stromboli.controllers.reporting import Events
from stromboli.kube import json
from stromboli.kube.client import Client
from stromboli.kube.clocks import SYSTEM_CLOCK, Clock
from stromboli.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    MalformedAnswer,
    NotFound,
)
from stromboli.kube.events import EventType, Reference
from stromboli.kube.json import JsonObject

log = logging.getLogger(__name__)

T = TypeVar("T")

PARALLEL_REQUESTS = 32


class Observer(Protocol):
    """Where the numbers of job control go."""

    def pod_created(self, seconds: float) -> None:
        """A pod was created, ``seconds`` after its job."""
        ...

    def phase_entered(self, job: Job, phase: str) -> None:
        """A job's status with a new phase was stored."""
        ...

    def job_gone(self, namespace: str, name: str, queue: str) -> None:
        """Forget the series of a job."""
        ...


@dataclass(frozen=True, slots=True)
class Performed:
    """What a plan that was carried out leaves to the next one."""

    again_in: float | None = None
    """In how many seconds another pass has to look or to write (see :mod:`.pacing`); None: when something changes."""
    moved: bool = False
    """Whether the job has ended the pass in another phase than that for which the plan was made."""


class Executor:
    """Performs operations for any job."""

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        events: Events,
        observer: Observer,
        clock: Clock = SYSTEM_CLOCK,
        *,
        counters_wait: float = pacing.LONGEST_WAIT,
    ) -> None:
        self._client = client
        self._clock = clock
        self._counters_wait = counters_wait
        self._ledger = ledger
        self._events = events
        self._observer = observer

    async def perform(self, raw: JsonObject, job: Job, operations: Iterable[Operation]) -> Performed:
        """Perform ``operations`` for ``job``, which was decoded from ``raw``, or those until it turns out to be gone.

        Raises whatever the API server answers, ``CreationFailed``, ``RemovalFailed``, ``Refused``.
        """
        memory = self._ledger.of(job.uid)
        memory.wants_group = False
        task = _Pass(self._client, memory, self._events, self._observer, self._clock, self._counters_wait, raw, job)
        for operation in operations:
            await task.perform(operation)
            if task.gone:
                break
        return task.performed


class _Pass:
    """One job, one plan."""

    def __init__(
        self,
        client: Client,
        memory: JobLedger,
        events: Events,
        observer: Observer,
        clock: Clock,
        counters_wait: float,
        raw: JsonObject,
        job: Job,
    ) -> None:
        self._client, self._memory, self._events, self._observer = client, memory, events, observer
        self._clock, self._counters_wait = clock, counters_wait
        self.gone = False
        self._left_for: float | None = None
        self._look_again: float | None = None
        self._raw, self._job = raw, job
        self._recorded = status.recorded(job)
        self._planned_for = phases.phase_of(job.status.state.phase)
        self._entered = ""
        self._namespace = job.namespace

    @property
    def performed(self) -> Performed:
        """What is left to do."""
        moved = self._entered not in ("", self._planned_for)
        waits = [one for one in (self._look_again, self._left_for) if one is not None]
        return Performed(min(waits, default=None), moved)

    async def perform(self, operation: Operation) -> None:
        match operation:
            case RecordEvent(type, reason, message):
                self._events.event(self._reference(), type, reason, message)
            case PatchJob(patch):
                await self._patch_job(patch)
            case WriteStatus(wanted):
                await self._write_status(wanted)
            case KeepAttachment(attachment):
                await self._keep(attachment)
            case DropAttachment(attachment):
                await self._drop(attachment)
            case CreateClaim(manifest):
                await self._create_claim(manifest)
            case CreatePodGroup(manifest):
                await self._create_group(manifest)
            case PatchPodGroup(name, patch):
                await self._client.patch(kinds.POD_GROUPS, name, patch, self._namespace)
            case DeletePodGroup(name, uid):
                await _tolerating(NotFound, self._client.delete(kinds.POD_GROUPS, name, self._namespace, uid=uid))
                self._memory.removed_groups.add(uid)
            case CreatePods(manifests):
                await self._create_pods(manifests)
            case RemovePods(members):
                await self._remove_pods(members)
            case LookAgain(seconds):
                self._look_again = seconds if self._look_again is None else min(seconds, self._look_again)

    # -- the job -----------------------------------------------------------------------------------------------------

    async def _patch_job(self, patch: JsonObject) -> None:
        self._remember(await self._client.patch(kinds.JOBS, self._job.name, self._guarded(patch), self._namespace))

    async def _write_status(self, wanted: JsonObject) -> None:
        patch = status.difference(self._recorded, wanted)
        self._left_for = self._wait_for_more(patch)
        if not patch or self._left_for is not None:
            return
        written = await self._status_written(self._guarded({"status": patch}))
        if written is None:
            self.gone = True  # and with it everything that could be said about it
            return
        self._remember(written)
        self._memory.carried_on = json.resource_version_of(written)
        self._memory.behind_since = None
        phase, before = _phase_in(wanted), _phase_in(self._recorded)
        self._recorded, self._entered = wanted, phase
        if phase != before:
            self._observer.phase_entered(self._job, phase)

    def _wait_for_more(self, patch: JsonObject) -> float | None:
        """Seconds for which a status that differs by ``patch`` is not written yet; None when nothing has to wait."""
        if not patch:
            self._memory.behind_since = None
            return None
        now = self._clock.monotonic()
        if self._memory.behind_since is None:
            self._memory.behind_since = now
        left = self._memory.behind_since + self._counters_wait - now
        return left if pacing.may_wait(patch) and left > 0 else None

    async def _status_written(self, body: JsonObject) -> JsonObject | None:
        """The job with its new status; None when it is gone. A job that cannot even begin is told so."""
        name = self._job.name
        try:
            return await self._client.patch(kinds.JOBS, name, body, self._namespace, subresource="status")
        except NotFound:
            return None
        except ApiError as error:
            if not self._job.status.state.phase and not isinstance(error, Conflict):
                text = f"Failed to initialize job status, err: {error}"
                self._events.event(self._reference(), EventType.WARNING, "JobStatusError", text)
            raise

    def _reference(self) -> Reference:
        return Reference.to_object(kinds.JOBS, self._raw)

    def _guarded(self, patch: JsonObject) -> JsonObject:
        """The patch on condition that this very job is still as it was read."""
        meta = {"resourceVersion": json.resource_version_of(self._raw), "uid": self._job.uid}
        return {**patch, "metadata": {**patch.get("metadata", {}), **meta}}

    def _remember(self, written: JsonObject) -> None:
        self._raw = written
        self._memory.wrote(written)

    # -- plugins -----------------------------------------------------------------------------------------------------

    async def _keep(self, attachment: Attachment) -> None:
        key = (attachment.kind.plural, attachment.name)
        seen = self._memory.kept.get(key)
        if seen is not None and not attachment.stale(seen):
            return
        try:
            self._memory.kept[key] = await self._create_or_replace(attachment)
        except Invalid as error:
            what = f"{attachment.kind.kind} {attachment.name}: {error.message}"
            advice = derived.remedy(attachment, self._job)
            raise Unrecoverable(
                "PluginError",
                f"Execute plugin when job add failed, err: {what}{'; ' if advice else ''}{advice}",
            ) from error

    async def _create_or_replace(self, attachment: Attachment) -> JsonObject:
        try:
            return await self._client.create(attachment.kind, self._owned(attachment))
        except AlreadyExists:
            present = await self._client.get(attachment.kind, attachment.name, self._namespace)
        if _belongs_to_an_earlier_job(present, self._job):
            raise Refused(
                "PluginError",
                f"{attachment.kind.kind} {attachment.name} belongs to an earlier job of this name, not deleted yet",
            )
        if not attachment.stale(present):
            return present
        replacement = self._owned(attachment)
        replacement["metadata"]["resourceVersion"] = json.resource_version_of(present)
        return await self._client.update(attachment.kind, replacement)

    def _owned(self, attachment: Attachment) -> JsonObject:
        built = attachment.build()
        meta = {
            **built.get("metadata", {}),
            "name": attachment.name,
            "namespace": self._namespace,
            "ownerReferences": [pods.owner_reference(self._job)],
        }
        return {**built, "apiVersion": attachment.kind.api_version, "kind": attachment.kind.kind, "metadata": meta}

    async def _drop(self, attachment: Attachment) -> None:
        """Delete the object if it is the job's own; one of the same name that somebody else made stays."""
        self._memory.kept.pop((attachment.kind.plural, attachment.name), None)
        kind, name = attachment.kind, attachment.name
        present = await _tolerating(NotFound, self._client.get(kind, name, self._namespace))
        if present is not None and _controller_uid(present) == self._job.uid:
            uid = json.uid_of(present)
            await _tolerating(NotFound, self._client.delete(kind, name, self._namespace, uid=uid))

    async def _create_claim(self, manifest: JsonObject) -> None:
        try:
            await _tolerating(AlreadyExists, self._client.create(kinds.PERSISTENT_VOLUME_CLAIMS, manifest))
        except (Invalid, Forbidden) as error:
            raise Refused("PVCError", f"Failed to create PVC, err: {error.message}") from error

    # -- gang and pods -----------------------------------------------------------------------------------------------

    async def _create_group(self, manifest: JsonObject) -> None:
        if self._memory.awaits_group(self._clock.monotonic()):
            self._memory.wants_group = self._memory.group_spec == manifest["spec"]
            return
        self._memory.wants_group = True
        try:
            created = await self._client.create(kinds.POD_GROUPS, manifest)
            self._memory.made_group({**created, "spec": manifest["spec"]}, self._clock.monotonic() + LONGEST_LAG)
        except AlreadyExists:
            present = await self._client.get(kinds.POD_GROUPS, manifest["metadata"]["name"], self._namespace)
            if json.uid_of(present) in self._memory.removed_groups:
                raise  # still on its way out: try again
        except (Invalid, Forbidden) as error:
            raise Refused("PodGroupError", f"Failed to create PodGroup, err: {error.message}") from error

    async def _create_pods(self, manifests: tuple[JsonObject, ...]) -> None:
        errors = await _each(manifests, self._create_pod)
        if errors:
            raise CreationFailed(errors, len(self._job.spec.tasks))

    async def _create_pod(self, manifest: JsonObject) -> None:
        try:
            raw = await self._client.request("POST", kinds.PODS.path(self._namespace), body=manifest)
        except AlreadyExists as error:
            await self._accept_present(manifest["metadata"]["name"], error)
            return
        created = _pod(raw)
        self._note_created(created)
        age = created.created - timestamp(self._job.metadata.creation_timestamp or "")
        self._observer.pod_created(max(0.0, age))

    async def _accept_present(self, name: str, error: AlreadyExists) -> None:
        """A pod of the name exists: fine if it is ours or on its way out, else the name is taken for good."""
        present = await _tolerating(NotFound, self._client.get(kinds.PODS, name, self._namespace))
        if present is None or _belongs_to_an_earlier_job(present, self._job):
            return
        if _controller_uid(present) != self._job.uid:
            raise error
        if json.uid_of(present) not in self._memory.removed:
            self._note_created(core.from_builtins(Pod, present))

    def _note_created(self, pod: Pod) -> None:
        member = member_of(pod)
        if member is not None:
            self._memory.created[pod.name] = Created(member, self._clock.monotonic() + LONGEST_LAG)

    async def _remove_pods(self, members: tuple[Member, ...]) -> None:
        failed = await _each([one for one in members if not one.marked], self._mark)
        if failed:
            raise RemovalFailed(failed, len(members))
        failed = await _each(members, self._remove)
        if failed:
            raise RemovalFailed(failed, len(members))

    async def _mark(self, member: Member) -> None:
        meta = {"uid": member.uid, "annotations": {names.CONTROLLER_OUT_OF_SYNC: "true"}}
        patch = self._client.patch(kinds.PODS, member.name, {"metadata": meta}, self._namespace)
        await _tolerating(NotFound, patch)

    async def _remove(self, member: Member) -> None:
        await _tolerating(NotFound, self._client.delete(kinds.PODS, member.name, self._namespace, uid=member.uid))
        self._memory.removed.add(member.uid)


def _phase_in(recorded: JsonObject) -> str:
    return str((recorded.get("state") or {}).get("phase", ""))


async def _each(items: Sequence[T], work: Callable[[T], Awaitable[None]]) -> list[Exception]:
    """Do ``work`` for every item, a bounded number at a time; the errors of those that failed."""
    waiting, errors = iter(items), list[Exception]()

    async def take() -> None:
        for item in waiting:
            try:
                await work(item)
            except KubeError as error:
                errors.append(error)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(PARALLEL_REQUESTS, len(items))):
            tasks.create_task(take())
    return errors


async def _tolerating(error: type[ApiError], answer: Awaitable[JsonObject]) -> JsonObject | None:
    """The answer, or None when it is the named error."""
    try:
        return await answer
    except error:
        return None


def _pod(raw: bytes) -> Pod:
    """The pod in an answer."""
    try:
        return core.decode(Pod, raw)
    except core.UndecodableObject as error:
        raise MalformedAnswer(f"the server's answer is not a pod: {error}") from error


def _controller_uid(obj: JsonObject) -> str:
    owners = json.metadata(obj).get("ownerReferences") or ()
    return next((str(owner.get("uid")) for owner in owners if owner.get("controller")), "")


def _belongs_to_an_earlier_job(obj: JsonObject, job: Job) -> bool:
    """Whether a Job of the same name but another UID controls the object."""
    owners = json.metadata(obj).get("ownerReferences") or ()
    return any(
        owner.get("controller")
        and (owner.get("kind"), owner.get("name")) == (kinds.JOBS.kind, job.name)
        and owner.get("uid") != job.uid
        for owner in owners
    )
