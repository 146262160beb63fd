"""From what changes in the cluster to keys of jobs that need a pass.

Nothing is decided here. What happens is told in three ways: a pass at once, a pass in a moment (so that a gang whose
pods start, end or go together is counted once), and none at all, for changes that a job cannot see or that this process
has made itself and counted already. What no later look at the cluster would show, an eviction, goes into the inbox.
"""

from __future__ import annotations

from collections.abc import Callable

from stromboli.api import complaints, kinds, names
from stromboli.api.core import OwnerReference, PersistentVolumeClaim, Pod, PodGroup, Queue
from stromboli.api.phases import JobEvent
from stromboli.controllers.informers import SharedInformers
from stromboli.controllers.job import pacing, podgroups
from stromboli.controllers.job.attention import Attention, untouched, untouched_since
from stromboli.controllers.job.deciding import about
from stromboli.controllers.job.inbox import Inbox
from stromboli.controllers.job.ledger import JobLedger, Ledger
from stromboli.controllers.job.members import Member, job_of, member_of
from stromboli.controllers.job.observing import BY_CLAIM, BY_QUEUE
from stromboli.kube import json
from stromboli.kube.json import JsonObject
from stromboli.kube.queues import WorkQueue
from stromboli.kube.stores import Key

CAUSE = "Origin reason is"
"""What the scheduler's words on a gang that is not ready have in them when they name a cause (spec 04 section 31.4)."""


class Listener:
    """Listens to the informers and fills the work queue."""

    def __init__(
        self,
        informers: SharedInformers,
        queue: WorkQueue[Key],
        ledger: Ledger,
        inbox: Inbox,
        attention: Attention,
        forget: Callable[[JsonObject], None],
    ) -> None:
        self._queue, self._ledger, self._inbox, self._forget = queue, ledger, inbox, forget
        self._attention = attention
        jobs = informers.plain(kinds.JOBS)
        self._jobs = jobs.store
        self._jobs.add_index(BY_QUEUE, queue_of)
        self._jobs.add_index(BY_CLAIM, _claims_of)
        jobs.add_handler(on_add=self._job_seen, on_update=self._job_changed, on_delete=self._job_gone)
        informers.pods.add_handler(on_add=self._pod_seen, on_update=self._pod_changed, on_delete=self._pod_gone)
        informers.pod_groups.add_handler(
            on_add=self._group_seen, on_update=self._group_changed, on_delete=self._group_gone
        )
        informers.queues.add_handler(on_add=self._queue_seen, on_delete=self._queue_seen)
        informers.claims.add_handler(on_add=self._claim_seen)

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def _job_seen(self, job: JsonObject) -> None:
        self._queue.add(json.key_of(job))

    def _job_changed(self, old: JsonObject, new: JsonObject) -> None:
        """Own writes need no further pass: counters never, phases because who wrote them goes on from there."""
        self._ledger.show(new)
        memory = self._ledger.known(json.uid_of(new))
        own = memory is not None and memory.carried_on == json.resource_version_of(new)
        changed = old.get("spec") != new.get("spec")
        if changed:
            self._queue.forget(json.key_of(new))  # what failed was another spec
        if changed or (not own and _state(old) != _state(new)):
            self._queue.add(json.key_of(new))

    def _job_gone(self, job: JsonObject) -> None:
        self._ledger.forget(json.uid_of(job))
        self._inbox.forget(json.key_of(job))
        self._queue.forget(json.key_of(job))  # the next job of that name has failed at nothing yet
        self._forget(job)

    # -- pods ----------------------------------------------------------------------------------------------------------

    def _pod_seen(self, pod: Pod) -> None:
        owner = job_of(pod)
        if owner is None:
            return
        memory = self._ledger.known(owner[1])
        created = memory.created.get(pod.name) if memory is not None else None
        if memory is not None and created is not None and created.member.uid == pod.uid:
            del memory.created[pod.name]  # counted when it was created
            if member_of(pod) != created.member:
                self._count_soon((pod.namespace, owner[0]), memory)
        else:
            self._queue.add((pod.namespace, owner[0]))

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        """Changes that a job cannot see are skipped."""
        before, after = member_of(old), member_of(new)
        if after is not None and (before != after or self._is_relief(before, after)):
            self._count_soon((new.namespace, after.job_name), self._ledger.known(after.job_uid))

    def _is_relief(self, before: Member | None, after: Member) -> bool:
        """Whether a scheduler has come to a pod at last, which its owner may have been told to wait for none."""
        since = before.unheeded_since if before is not None else None
        return after.unheeded_since is None and self._attention.is_late(since)

    def _pod_gone(self, pod: Pod) -> None:
        owner = job_of(pod)
        if owner is None:
            return
        key = (pod.namespace, owner[0])
        memory, member = self._ledger.known(owner[1]), member_of(pod)
        expected = memory is not None and pod.uid in memory.removed
        if memory is not None:
            memory.removed.discard(pod.uid)
            if pod.name in memory.created and memory.created[pod.name].member.uid == pod.uid:
                del memory.created[pod.name]
        if member is None or member.marked or expected:
            self._count_soon(key, memory)
        else:
            self._inbox.report(key, about(member, JobEvent.POD_EVICTED))
            self._queue.add(key)

    def _count_soon(self, key: Key, memory: JobLedger | None) -> None:
        self._queue.add_after(key, pacing.counting_delay(memory.pods if memory is not None else 0))

    # -- gangs, queues and claims --------------------------------------------------------------------------------------

    def _group_seen(self, group: PodGroup) -> None:
        """A group that was created as its job wants it, and still does, is no news before the scheduler has spoken."""
        owner = _owner_of(group)
        if owner is None:
            return
        memory = self._ledger.known(owner.uid)
        if memory is not None:
            memory.shown_group = group.uid
        if memory is not None and memory.created_group == group.uid:
            memory.await_group_no_longer()
            if memory.wants_group and not podgroups.admitted(group):
                return
        self._queue.add((group.namespace, owner.name))

    def _group_changed(self, old: PodGroup, new: PodGroup) -> None:
        owner = _owner_of(new)
        if owner is None:
            return
        relief = not untouched(new) and self._attention.is_late(untouched_since(old))
        if relief or _news(old) != _news(new):
            self._queue.add((new.namespace, owner.name))

    def _group_gone(self, group: PodGroup) -> None:
        owner = _owner_of(group)
        if owner is None:
            return
        key = (group.namespace, owner.name)
        memory = self._ledger.known(owner.uid)
        expected = memory is not None and group.uid in memory.removed_groups
        if memory is not None:
            memory.removed_groups.discard(group.uid)
            if memory.created_group == group.uid:
                memory.await_group_no_longer()
        if not expected or self._queue.failures(key):  # the next group may have waited for the name of this one
            self._queue.add(key)

    def _queue_seen(self, queue: Queue) -> None:
        for key in self._jobs.keys_by_index(BY_QUEUE, queue.name):
            self._queue.add(key)

    def _claim_seen(self, claim: PersistentVolumeClaim) -> None:
        """A job that has waited for the claim goes on at once, not when its back-off is over."""
        for key in self._jobs.keys_by_index(BY_CLAIM, names.qualified(claim.namespace, claim.name)):
            self._queue.add(key)


def queue_of(job: JsonObject) -> tuple[str, ...]:
    """Name of the job's queue, as an index wants it."""
    return (str((job.get("spec") or {}).get("queue") or names.DEFAULT_QUEUE),)


def _claims_of(job: JsonObject) -> tuple[str, ...]:
    volumes = (job.get("spec") or {}).get("volumes") or ()
    namespace = json.key_of(job)[0]
    named = (one.get("volumeClaimName") for one in volumes if isinstance(one, dict))
    return tuple({names.qualified(namespace, name) for name in named if isinstance(name, str) and name})


def _owner_of(group: PodGroup) -> OwnerReference | None:
    return next((one for one in group.metadata.owner_references if one.kind == kinds.JOBS.kind), None)


def _news(group: PodGroup) -> tuple[object, ...]:
    """What of a PodGroup matters to its job: the gate, what a policy may answer, and what its owner is told.

    Numbers in messages are no news, but a cause is that comes to what was only a consequence.
    """
    told = complaints.complaint(group.status.conditions)
    why = told and (told.type, told.status, told.reason, CAUSE in told.message)
    unknown = group.status.phase == JobEvent.JOB_UNKNOWN
    return podgroups.admitted(group), unknown, group.spec, group.deleting, why


def _state(job: JsonObject) -> tuple[object, object]:
    state = (job.get("status") or {}).get("state") or {}
    return state.get("phase"), json.metadata(job).get("deletionTimestamp")
